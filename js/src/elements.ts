/**
 * Views in your own page. `connectElements("/transom")` defines `<transom-view view="orders-1">`, the
 * place of one View, and `<transom-stage>`, which shows every View that has no other place. Events
 * bubble up to the document:
 *
 * - `opened`: a View opened. A listener adds a `<transom-view>`, or leaves it to the stage.
 * - `closed`: a View was closed; `detail.reason` says why.
 * - `approval`: the user has to be asked. To do that in your own way, call `preventDefault()` and
 *   later `detail.answer(value)`; `detail.withdrawn` is aborted if the answer is not needed any more.
 * - `problem`: a View cannot be shown, does not respond, or there is no connection.
 * - `recovered`: what `problem` told of is over.
 */
import { Agent, surroundings } from "./agent.js";
import { element } from "./dom.js";
import { socketUrl } from "./link.js";
import type { Answer, Ask, Offer, PlaceMessage, Question, Surroundings, Wish } from "./messages.js";
import { Questions, type Asking } from "./questions.js";
import { View, type ViewAgent } from "./view.js";
import { Views } from "./views.js";

/** What `approval` has: the question, and how to answer it. */
export type Approval = Question & {
  answer: (value: Answer) => void;
  /** Aborted when the answer is not needed any more. */
  withdrawn: AbortSignal;
};

/** What `problem` has. */
export interface ViewProblem {
  /**
   * A View could not be shown, or has not started (`failed`), or is gone or busy for long (`unresponsive`); the
   * connection was lost (`connection`) or has ended for good (`over`).
   */
  kind: "failed" | "unresponsive" | "connection" | "over";
  message: string;
  /** The View; undefined if it is the connection. */
  view?: string;
}

/** The details of the events, by name. */
export interface ViewEvents {
  opened: { view: string; server?: string; tool?: string };
  closed: { view: string; reason: string };
  approval: Approval;
  problem: ViewProblem;
  recovered: Omit<ViewProblem, "message">;
}

declare global {
  interface HTMLElementTagNameMap {
    "transom-view": HTMLElement;
    "transom-stage": HTMLElement;
  }
  interface GlobalEventHandlersEventMap {
    opened: CustomEvent<ViewEvents["opened"]>;
    closed: CustomEvent<ViewEvents["closed"]>;
    approval: CustomEvent<ViewEvents["approval"]>;
    problem: CustomEvent<ViewEvents["problem"]>;
    recovered: CustomEvent<ViewEvents["recovered"]>;
  }
}

/** Fire an event; whether a listener prevented what happens without one. */
function fire<Name extends keyof ViewEvents>(
  target: EventTarget,
  name: Name,
  detail: ViewEvents[Name],
): boolean {
  const cancelable = name === "approval";
  const event = new CustomEvent(name, { bubbles: true, composed: true, cancelable, detail });
  return !target.dispatchEvent(event);
}

/** Asks on a card, unless the page asks in its own way. */
class PageQuestions implements Asking {
  readonly #place = element("div", { id: "transom-questions" });
  readonly #cards: Questions;
  readonly #placeOf: (view: string) => EventTarget;
  readonly #own = new Map<number, AbortController>(); // of the questions that the page asks

  /** `placeOf` has where the event of a question about a View is fired. */
  constructor(views: Views, placeOf: (view: string) => EventTarget) {
    this.#placeOf = placeOf;
    this.#cards = new Questions(this.#place, {
      onShown: (asker, question) => views.pointAt(asker, question?.view),
    });
  }

  ask(asker: ViewAgent, question: Ask, onAnswer: (value: Answer) => void): void {
    const { id, do: _, ...about } = question;
    const withdrawn = new AbortController();
    const answer = (value: Answer): void => {
      if (this.#own.delete(id)) onAnswer(value);
    };
    this.#own.set(id, withdrawn);
    const detail = { ...about, answer, withdrawn: withdrawn.signal };
    if (fire(this.#placeOf(question.view), "approval", detail)) return;
    if (!this.#own.delete(id)) return; // it was answered all the same
    if (!this.#place.isConnected) document.body.append(this.#place);
    this.#cards.ask(asker, question, onAnswer);
  }

  withdraw(asker: ViewAgent, id: number): void {
    this.#own.get(id)?.abort();
    this.#own.delete(id);
    this.#cards.withdraw(asker, id);
  }

  clear(asker: ViewAgent): void {
    for (const id of [...this.#own.keys()]) this.withdraw(asker, id);
    this.#cards.clear(asker);
  }
}

const explain = (reason: string | undefined): string =>
  reason === "unknown" ? "You are not signed in, or this page may not show Views." : `${reason}.`;

/** Which View is where in the page. */
class Places {
  readonly #places = new Map<string, View>(); // the element of each View
  readonly #offers = new Set<string>(); // Views that the page may have
  readonly #stages = new Set<HTMLElement>();
  readonly #dark = matchMedia("(prefers-color-scheme: dark)");
  readonly #views = new Views(
    (id) => this.#places.get(id) ?? (document.createElement("transom-view") as View),
  );
  readonly #agent: Agent<PlaceMessage>;
  #theme: Surroundings["theme"] | undefined; // as the host knows it
  #isLost = false; // there is no connection, and the page was told so

  constructor(url: string) {
    this.#agent = new Agent(
      0,
      { url, token: "" },
      {
        views: this.#views,
        questions: new PageQuestions(this.#views, (view) => this.#places.get(view) ?? document),
        onMessage: (message) => this.#onMessage(message),
        onFresh: () => {
          this.#offers.clear();
          for (const view of this.#places.keys()) this.#wishFor(view);
        },
        onState: ({ state }, reason) => {
          if (state === "connected") this.#onConnected();
          else if (state === "reconnecting") this.#onLost();
          else if (state === "over") {
            const message = explain(reason);
            for (const place of this.#places.values()) place.note(message);
            fire(document, "problem", { kind: "over", message });
          }
        },
      },
    );
    this.#watchPage();
  }

  #onConnected(): void {
    this.#sendSurroundings(true);
    if (this.#isLost) fire(document, "recovered", { kind: "connection" });
    this.#isLost = false;
  }

  /** Called for every attempt to connect again that fails; the page is told once. */
  #onLost(): void {
    const message = "No connection. Trying again…";
    if (!this.#isLost) fire(document, "problem", { kind: "connection", message });
    this.#isLost = true;
  }

  #watchPage(): void {
    const follow = (): void => this.#sendSurroundings(false);
    addEventListener("resize", () => this.#views.onResized());
    addEventListener("pageshow", ({ persisted }) => {
      if (persisted) location.reload();
    });
    this.#dark.addEventListener("change", follow);
    // Pages change their colours by a class or an attribute of their root.
    new MutationObserver(follow).observe(document.documentElement, { attributes: true });
  }

  // --- the page's elements --------------------------------------------------------------------------

  /** An element is the place of a View from now on. */
  add(id: string, place: View): void {
    if (this.#places.has(id)) {
      place.note("This View is shown elsewhere on this page.");
      return;
    }
    this.#places.set(id, place);
    place.note("Opening…");
    this.#wishFor(id);
  }

  remove(id: string, place: View): void {
    if (this.#places.get(id) !== place) return;
    this.#places.delete(id);
    this.#views.drop(this.#agent, id);
    this.#wish(id, "gone");
  }

  /** An element shows the Views that have no other place from now on. */
  addStage(stage: HTMLElement): void {
    this.#stages.add(stage);
    for (const view of this.#offers) this.#placeOn(stage, view);
  }

  removeStage(stage: HTMLElement): void {
    this.#stages.delete(stage);
  }

  #placeOn(stage: HTMLElement, view: string): void {
    if (!this.#places.has(view)) stage.append(element("transom-view", { view }));
  }

  #wish(view: string, value: Wish): void {
    this.#agent.notify({ do: "place", view, value });
  }

  /** A hidden page does not take a View from a visible one. */
  #wishFor(view: string): void {
    this.#wish(view, document.hidden ? "free" : "take");
  }

  // --- what the host says ---------------------------------------------------------------------------

  #onMessage(message: PlaceMessage): void {
    const { view } = message;
    const openAgain = (): void => this.#wish(view, "again");
    switch (message.do) {
      case "offer":
        this.#onOffer(message);
        break;
      case "elsewhere":
        this.#places
          .get(view)
          ?.note("This View is open in another tab or window.", { "Show it here": openAgain });
        break;
      case "absent":
        this.#onAbsent(view, message.reason, message.again ? { "Open again": openAgain } : {});
        break;
    }
  }

  #onOffer({ do: _, new: isNew, ...detail }: Offer): void {
    const { view } = detail;
    this.#offers.add(view);
    const [stage] = this.#stages;
    if (this.#places.has(view)) this.#wish(view, "free");
    else if (isNew) fire(stage ?? document, "opened", detail);
    if (stage) this.#placeOn(stage, view);
  }

  #onAbsent(view: string, reason: string, acts: Record<string, () => void>): void {
    const place = this.#places.get(view);
    this.#offers.delete(view);
    place?.note(`This View was closed: ${reason}.`, acts);
    fire(place ?? document, "closed", { view, reason });
    if (place?.parentElement && this.#stages.has(place.parentElement)) place.remove();
  }

  // --- the page's colours ---------------------------------------------------------------------------

  #sendSurroundings(always: boolean): void {
    const theme = this.#pageTheme();
    if (always || theme !== this.#theme) this.#agent.notify(surroundings({ theme }));
    this.#theme = theme;
  }

  /** The page's own colours: what its styles or its meta element say; for both, the user's system. */
  #pageTheme(): Surroundings["theme"] {
    const { colorScheme } = getComputedStyle(document.documentElement);
    const meta = document.querySelector<HTMLMetaElement>("meta[name=color-scheme]");
    const schemes = colorScheme === "normal" ? (meta?.content ?? "") : colorScheme;
    const isDark = schemes.includes("dark");
    const isBoth = isDark && schemes.includes("light");
    return (isBoth ? this.#dark.matches : isDark) ? "dark" : "light";
  }
}

/** `<transom-view>` and `<transom-stage>`. */
function defineElements(places: Places): void {
  class PlacedView extends View {
    static readonly observedAttributes = ["view"];
    override readonly isPlaced = true;
    #id: string | null = null;

    connectedCallback(): void {
      this.#use(this.getAttribute("view"));
    }

    override disconnectedCallback(): void {
      super.disconnectedCallback();
      this.#use(null);
    }

    attributeChangedCallback(_name: string, _before: string | null, now: string | null): void {
      if (this.isConnected) this.#use(now);
    }

    #use(id: string | null): void {
      if (id === this.#id) return;
      if (this.#id) places.remove(this.#id, this);
      this.#id = id;
      if (id) places.add(id, this);
    }
  }

  class TransomStage extends HTMLElement {
    connectedCallback(): void {
      places.addStage(this);
    }

    disconnectedCallback(): void {
      places.removeStage(this);
    }
  }

  customElements.define("transom-view", PlacedView);
  customElements.define("transom-stage", TransomStage);
}

let connectedTo: string | undefined;

/**
 * Define the elements, and connect them with the `WebViews` at an address, such as "/transom". Without
 * one it is the folder of this script. A page has one connection: a second call for the same address
 * does nothing, and for another one it throws.
 */
export function connectElements(address: string | URL = new URL(".", import.meta.url)): void {
  const { href } = new URL(address, document.baseURI);
  const url = socketUrl(href.endsWith("/") ? href : `${href}/`);
  if (connectedTo === url) return;
  if (connectedTo) throw new Error(`The elements are connected with ${connectedTo} already`);
  connectedTo = url;
  defineElements(new Places(url));
}
