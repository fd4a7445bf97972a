/**
 * Views in your own page: `<transom-view view="orders-1">` is the place of one View, and
 * `<transom-stage>` shows every View that has no other place. Events bubble up to the document:
 *
 * - `opened`: a View opened. A listener adds a `<transom-view>`, or leaves it to the stage.
 * - `closed`: a View was closed; `detail.reason` says why.
 * - `approval`: the user has to be asked. To do that in your own way, call `preventDefault()` and
 *   later `detail.answer(value)`; `detail.withdrawn` is aborted if the answer is not needed any more.
 * - `problem`: a View cannot be shown, does not respond, or there is no connection.
 */
import { Agent, surroundings } from "./agent.js";
import { Questions } from "./questions.js";
import { element, View, Views } from "./views.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const places = new Map(); // the element of each View
const offers = new Map(); // Views that a page may have, by id
const stages = new Set();

function fire(target, name, detail, cancelable = false) {
  const event = new CustomEvent(name, { bubbles: true, composed: true, cancelable, detail });
  (target ?? document).dispatchEvent(event);
  return event.defaultPrevented;
}

// --- places -----------------------------------------------------------------------------------

const wish = (view, value) => agent.notify({ do: "place", view, value });

class PlacedView extends View {
  static observedAttributes = ["view"];
  #id = null;

  /** The page decides where it is, and removes it. */
  get placed() {
    return true;
  }

  connectedCallback() {
    this.#use(this.getAttribute("view"));
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#use(null);
  }

  attributeChangedCallback(_name, _before, now) {
    if (this.isConnected) this.#use(now);
  }

  #use(id) {
    if (id === this.#id) return;
    if (this.#id && places.get(this.#id) === this) {
      places.delete(this.#id);
      views.drop(agent, this.#id);
      wish(this.#id, "gone");
    }
    this.#id = id;
    if (!id) return;
    if (places.has(id)) {
      this.note("This View is shown elsewhere on this page.");
      return;
    }
    places.set(id, this);
    this.note("Opening…");
    // A hidden page does not take a View from a visible one.
    wish(id, document.hidden ? "free" : "take");
  }
}

/** Shows the Views that have no other place in the page. */
class TransomStage extends HTMLElement {
  connectedCallback() {
    stages.add(this);
    for (const view of offers.keys()) this.place(view);
  }

  disconnectedCallback() {
    stages.delete(this);
  }

  place(view) {
    if (!places.has(view)) this.append(element("transom-view", { view }));
  }
}

// --- what the host says -----------------------------------------------------------------------

const onMessage = {
  offer({ new: isNew, ...detail }) {
    const { view } = detail;
    offers.set(view, detail);
    const [stage] = stages;
    if (places.has(view)) wish(view, "free");
    else if (isNew) fire(stage, "opened", detail);
    if (!places.has(view)) stage?.place(view);
  },
  elsewhere({ view }) {
    places.get(view)?.note("This View is open in another tab or window.", {
      "Show it here": () => wish(view, "again"),
    });
  },
  absent({ view, reason, again }) {
    const place = places.get(view);
    offers.delete(view);
    place?.note(`This View was closed: ${reason}.`, again ? { "Open again": () => wish(view, "again") } : {});
    fire(place, "closed", { view, reason });
    if (stages.has(place?.parentElement)) place.remove();
  },
};

// --- questions --------------------------------------------------------------------------------

const asking = element("div", { id: "transom-questions" });
const cards = new Questions(asking, (_agent, question) => views.pointAt(agent, question?.view));
const own = new Map(); // the questions that the page asks in its own way

const questions = {
  ask(asker, question, onAnswer) {
    const { id, do: _, ...about } = question;
    const withdrawn = new AbortController();
    const answer = (value) => own.delete(id) && onAnswer(value);
    own.set(id, withdrawn);
    const detail = { ...about, answer, withdrawn: withdrawn.signal };
    if (fire(places.get(question.view), "approval", detail, true)) return;
    if (!own.delete(id)) return;
    if (!asking.isConnected) document.body.append(asking);
    cards.ask(asker, question, onAnswer);
  },
  withdraw(asker, id) {
    own.get(id)?.abort();
    own.delete(id);
    cards.withdraw(asker, id);
  },
  clear(asker) {
    for (const id of [...own.keys()]) this.withdraw(asker, id);
    cards.clear(asker);
  },
};

// --- the page ---------------------------------------------------------------------------------

/** The page's own colours: what its styles say, or else what the user's system says. */
function theme() {
  const { colorScheme } = getComputedStyle(document.documentElement);
  const both = colorScheme.includes("light") && colorScheme.includes("dark");
  return (both ? dark.matches : colorScheme.includes("dark")) ? "dark" : "light";
}

let known = "";

function sendSurroundings(always) {
  const now = theme();
  if (always || now !== known) agent.notify(surroundings({ theme: now }));
  known = now;
}

const why = (reason) =>
  reason === "unknown" ? "You are not signed in, or this page may not show Views." : `${reason}.`;

const views = new Views((id) => places.get(id) ?? document.createElement("transom-view"));
const agent = new Agent(
  0,
  { url: new URL("socket", import.meta.url).href.replace("http", "ws"), token: "" },
  {
    views,
    questions,
    onMessage: (message) => onMessage[message.do]?.(message),
    onFresh() {
      offers.clear();
      for (const view of places.keys()) wish(view, document.hidden ? "free" : "take");
    },
    onState({ state }, reason) {
      if (state === "connected") sendSurroundings(true);
      else if (state === "reconnecting") {
        fire(document, "problem", { kind: "connection", message: "No connection. Trying again…" });
      } else if (state === "over") {
        for (const place of places.values()) place.note(why(reason));
        fire(document, "problem", { kind: "over", message: why(reason) });
      }
    },
  },
);

addEventListener("resize", () => views.resized());
addEventListener("keydown", ({ key }) => {
  if (key === "Escape") views.fullscreen?.setMode("inline");
});
addEventListener("pagehide", () => agent.link.leave());
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
addEventListener("online", () => agent.link.hurry());
document.addEventListener("visibilitychange", () => agent.link.hurry());
dark.addEventListener("change", () => sendSurroundings());
// Pages change their colours by a class or an attribute of their root.
new MutationObserver(() => sendSurroundings()).observe(document.documentElement, { attributes: true });

customElements.define("transom-view", PlacedView);
customElements.define("transom-stage", TransomStage);
