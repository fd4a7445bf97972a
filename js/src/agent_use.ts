/**
 * An agent reads and uses a View as its user would. The user sees that in the View's caption, and can
 * take control: then the agent does nothing in it until they give it back.
 */
import { element } from "./dom.js";
import { DRIVE, type Drive, type PageMessage, type SandboxDrive } from "./messages.js";

const SHOWN_FOR = 6000; // milliseconds
const MAX_ANSWER = 256 * 1024; // characters, as the host takes
/** What can be asked for while the user has control. */
const HARMLESS = ["look", "mark", "hide", "alive"];
const TAKEN = "The user has taken control of the View";

type Own = Extract<PageMessage, { do: "driven" | "control" }>;
type WithoutView<Message> = Message extends unknown ? Omit<Message, "view"> : never;

/** The View that is used. */
export interface UsedView {
  /** Pass a message to its sandbox. */
  post: (message: unknown) => void;
  /** Whether its page is in the sandbox. */
  isFilled: () => boolean;
  notify: (message: WithoutView<Own>) => void;
  /** What is shown in the caption has changed. */
  onShown: () => void;
}

export class AgentUse {
  /** What the caption has of it. */
  readonly note: HTMLElement;
  readonly #view: UsedView;
  readonly #shown: string;
  readonly #button = element("button", { type: "button" });
  readonly #waiting = new Set<number>(); // requests without an answer
  #isTaken = false;
  #hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(shown: string, view: UsedView) {
    this.#shown = shown;
    this.#view = view;
    const text = element("span", { role: "status" });
    this.note = element("span", { class: "use", part: "use", hidden: "" }, text, this.#button);
    this.#button.addEventListener("click", () => this.#take(!this.#isTaken));
    this.#write();
  }

  drive({ id, request }: Drive): void {
    if (request.op !== "alive") this.#show();
    else if (!this.#view.isFilled()) {
      this.#answer(id, "{}"); // there is nothing that could be in a loop
      return;
    }
    if (this.#isTaken && !HARMLESS.includes(request.op)) {
      this.#answer(id, JSON.stringify({ problem: "unfit", detail: TAKEN }));
      return;
    }
    this.#waiting.add(id);
    const params: SandboxDrive = { id, request };
    this.#view.post({ jsonrpc: "2.0", method: DRIVE, params });
  }

  /** An answer from the sandbox, or from the View itself, about its own page. */
  answer(params: unknown): void {
    const { id, answer } = Object(params) as { id?: unknown; answer?: unknown };
    if (typeof id !== "number" || typeof answer !== "string" || !this.#waiting.delete(id)) return;
    const isLong = answer.length > MAX_ANSWER;
    this.#answer(id, isLong ? JSON.stringify({ error: "The answer is too long" }) : answer);
  }

  #answer(id: number, answer: string): void {
    this.#view.notify({ do: "driven", id, answer });
  }

  #take(isTaken: boolean): void {
    this.#isTaken = isTaken;
    this.#view.notify({ do: "control", value: isTaken });
    this.#show();
  }

  #write(): void {
    const [text, label, title] = this.#isTaken
      ? ["You have control", "Give it back", "Let the agent use this View again"]
      : ["Used by the agent", "Take control", "Let the agent do nothing in this View"];
    this.note.firstElementChild!.textContent = text;
    this.#button.textContent = label;
    this.#button.title = title;
    this.#button.setAttribute("aria-label", `${label}: ${this.#shown}`);
  }

  /** Say so for a while after each use; as long as the user has control. */
  #show(): void {
    clearTimeout(this.#hiding);
    this.#write();
    if (this.note.hidden) {
      this.note.hidden = false;
      this.#view.onShown();
    }
    if (this.#isTaken) return;
    this.#hiding = setTimeout(() => {
      this.note.hidden = true;
      this.#view.onShown();
    }, SHOWN_FOR);
  }
}
