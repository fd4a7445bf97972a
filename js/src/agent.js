/** One agent whose Views the page shows: handles its messages, over one link. */
import { CONTROL, Link } from "./link.js";
import { element } from "./views.js";

export class Agent {
  #views;
  #questions;
  #page;
  state = "connecting";

  /**
   * @param {{views: Views, questions: Questions, onState: (agent: Agent, why?: string) => void,
   *   onMessage: (message: object) => void, onFresh?: () => void}} page
   *   `onMessage` gets what is neither about a View that is shown nor a question; `onFresh`: the host
   *   starts over with this page.
   */
  constructor(number, { url, token }, page) {
    this.number = number;
    this.#views = page.views;
    this.#questions = page.questions;
    this.#page = page;
    this.link = new Link({ url, token, on: this.#on });
  }

  notify = (message) => this.link.send(CONTROL, JSON.stringify(message));

  send = (view, text) => this.link.send(view, text);

  #onControl = {
    mount: (message) => this.#views.mount(this, message),
    unmount: ({ view }) => this.#views.drop(this, view),
    trouble: (message) => this.#views.get(this, message.view)?.setTrouble(message),
    gone: (message) => this.#views.showGone(this, message),
    marks: (message) => this.#views.get(this, message.view)?.setMarks(message),
    clear: ({ origins }) => this.#views.clearStorage(origins),
    named: (message) => this.#views.get(this, message.view)?.name(message),
    mode: ({ view, mode }) => this.#views.get(this, view)?.setMode(mode),
    ask: (question) => this.#questions.ask(this, question, (value) => this.#answer(question, value)),
    unask: ({ id }) => this.#questions.withdraw(this, id),
    download: ({ name, mime, data }) => save(name, mime, data),
  };

  #answer({ id, kind, url }, value) {
    this.notify({ do: "answer", id, value });
    // Synchronously, in the user's click: otherwise the browser blocks the window.
    if (kind === "link" && value) window.open(url, "_blank", "noopener,noreferrer");
  }

  #clear() {
    this.#views.clear(this);
    this.#questions.clear(this);
  }

  #on = {
    frame: (view, text) => {
      const message = JSON.parse(text);
      if (view === CONTROL) (this.#onControl[message.do] ?? this.#page.onMessage)(message);
      else this.#views.get(this, view)?.post(message);
    },
    state: (now, why) => {
      this.state = now;
      if (now === "over") this.#clear();
      else this.#views.reached(this, now === "connected");
      this.#page.onState(this, why);
    },
    fresh: () => {
      this.#clear();
      this.#page.onFresh?.();
    },
    flood: (view) => {
      this.#views.drop(this, view);
      this.notify({ do: "broken", view, reason: "it sends more than the host takes" });
    },
  };
}

function save(name, mime, data) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** What the page knows about its user. */
export const surroundings = (more) => ({
  do: "surroundings",
  value: {
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    userAgent: "transom",
    platform: "web",
    deviceCapabilities: {
      touch: navigator.maxTouchPoints > 0,
      hover: matchMedia("(hover: hover)").matches,
    },
    ...more,
  },
});
