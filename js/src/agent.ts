/** One agent whose Views the page shows: handles its messages, over one link. */
import { blobOf, saveFile } from "./dom.js";
import { CONTROL, Link, type LinkEvents, type LinkState } from "./link.js";
import type {
  Answer,
  Ask,
  HostMessage,
  PageMessage,
  Surroundings,
  ViewMessage,
} from "./messages.js";
import type { Asking } from "./questions.js";
import type { ViewAgent } from "./view.js";
import type { Views } from "./views.js";

/** The page that shows the Views of an agent; `Other` are messages for this kind of page alone. */
export interface AgentPage<Other extends HostMessage> {
  readonly views: Views;
  readonly questions: Asking;
  /** The connection to an agent has another state; `why` it is over. */
  onState: (agent: Agent<Other>, why?: string) => void;
  onMessage: (message: Other) => void;
  /** The host starts over with this page. */
  onFresh?: () => void;
}

export class Agent<Other extends HostMessage> implements ViewAgent {
  readonly number: number;
  readonly link: Link;
  state: LinkState | "connecting" = "connecting";
  readonly #page: AgentPage<Other>;
  readonly #asked = new Set<number>(); // questions that are not shown yet

  constructor(
    number: number,
    { url, token }: { url: string; token: string },
    page: AgentPage<Other>,
  ) {
    this.number = number;
    this.#page = page;
    this.link = new Link({ url, token, on: this.#events() });
  }

  notify(message: PageMessage): void {
    this.link.send(CONTROL, JSON.stringify(message));
  }

  send(view: string, text: string): void {
    this.link.send(view, text);
  }

  #onControl(message: ViewMessage | Other): void {
    const { views, questions } = this.#page;
    const known = message as ViewMessage;
    switch (known.do) {
      case "prepare":
        views.prepare(this, known);
        break;
      case "mount":
        views.mount(this, known);
        break;
      case "unmount":
        views.drop(this, known.view);
        break;
      case "gone":
        views.showGone(this, known);
        break;
      case "trouble":
        views.get(this, known.view)?.setTrouble(known);
        break;
      case "marks":
        views.get(this, known.view)?.setMarks(known);
        break;
      case "named":
        views.get(this, known.view)?.setName(known);
        break;
      case "tools":
        views.get(this, known.view)?.setTools(known.tools);
        break;
      case "mode":
        views.get(this, known.view)?.setMode(known.mode);
        break;
      case "drive":
        views.get(this, known.view)?.drive(known);
        break;
      case "clear":
        views.clearStorage(known.origins);
        break;
      case "ask":
        void this.#ask(known);
        break;
      case "unask":
        this.#asked.delete(known.id);
        questions.withdraw(this, known.id);
        break;
      case "download":
        saveFile(known.name, blobOf(known.data, known.mime));
        break;
      default:
        this.#page.onMessage(message as Other);
    }
  }

  /** What the user has just pressed in the View for, is not asked again. */
  async #ask(question: Ask): Promise<void> {
    const { id, kind, view } = question;
    const onAnswer = (value: Answer): void => this.#answer(question, value);
    this.#asked.add(id);
    const isWanted = kind === "mode" && (await this.#page.views.get(this, view)?.wasPressed());
    if (!this.#asked.delete(id)) return; // it was withdrawn meanwhile
    if (isWanted) onAnswer(true);
    else this.#page.questions.ask(this, question, onAnswer);
  }

  #answer(question: Ask, value: Answer): void {
    const { id, kind } = question;
    if (typeof value === "object") this.notify({ do: "answer", id, value: true, fields: value });
    else this.notify({ do: "answer", id, value });
    // Synchronously, in the user's click: otherwise the browser blocks the window.
    const isLink = kind === "link" || kind === "elicit";
    if (isLink && question.url && value === true) {
      window.open(question.url, "_blank", "noopener,noreferrer");
    }
  }

  #clear(): void {
    this.#asked.clear();
    this.#page.views.clear(this);
    this.#page.questions.clear(this);
  }

  #events(): LinkEvents {
    const { views, onState, onFresh } = this.#page;
    return {
      frame: (view, text) => {
        const message: unknown = JSON.parse(text);
        if (view === CONTROL) this.#onControl(message as ViewMessage | Other);
        else views.get(this, view)?.post(message);
      },
      state: (now, why) => {
        this.state = now;
        if (now === "over") this.#clear();
        else views.setReached(this, now === "connected");
        onState(this, why);
      },
      fresh: () => {
        this.#clear();
        onFresh?.();
      },
      flood: (view) => {
        views.drop(this, view);
        this.notify({ do: "broken", view, reason: "it sends more than the host takes" });
      },
    };
  }
}

/** What the page knows about its user. */
export const surroundings = (
  own: Pick<Surroundings, "theme"> & Partial<Surroundings>,
): PageMessage => ({
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
    ...own,
  },
});
