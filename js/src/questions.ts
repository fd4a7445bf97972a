/**
 * Questions to the user: whether the model may call a tool, whether a link is opened, whether files
 * are saved, whether a View stays, what a server wants to know. A press that was meant for something else answers nothing:
 *
 * 1. One question is shown at a time. The others wait, and do not move it.
 * 2. When the question that is shown is withdrawn and others wait, a note takes its place. The next
 *    one is shown when the user asks for it.
 * 3. Buttons work only after a short time without a press, in which the question was visible. That
 *    time is longer if the user was using a View, which could guess the next press.
 * 4. What is asked about is shown whole. Buttons other than those that refuse work once its end was
 *    visible.
 */
import { element, rootOf, type Nodes } from "./dom.js";
import { focusedElement } from "./focus.js";
import type { Answer, Ask, Question, QuestionKinds } from "./messages.js";
import type { ViewAgent } from "./view.js";
import { questionForm } from "./question_form.js";
import { attribution } from "./view_parts.js";

const QUIET = 500; // milliseconds
const QUIET_AFTER_VIEW = 1500;
const LOOK_EVERY = 100;
// What nobody sees, or what turns text around; a line break and a space are seen.
const UNSEEN = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const STRINGS = /("(?:[^"\\]|\\.)*")/;

/** With an escape, as in JSON, for every character that would not be seen. */
const visible = (text: string): string =>
  text.replace(UNSEEN, (found) =>
    found === "\n" || found === " "
      ? found
      : [...Array(found.length).keys()]
          .map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`)
          .join(""),
  );

function sized(bytes: number): string {
  const units = ["bytes", "KB", "MB"];
  let unit = 0;
  let size = bytes;
  for (; size >= 1024 && unit < 2; unit += 1) size /= 1024;
  return `${unit ? size.toFixed(1) : size} ${units[unit]}`;
}

const paragraph = (text: string): HTMLElement => element("p", { text });
const quoted = (text: string): HTMLElement => element("blockquote", { text });

/** All of a text, which can be scrolled. Its strings do not change places, in whatever script. */
function verbatim(text: string): HTMLElement {
  const parts = visible(text)
    .split(STRINGS)
    .map((part, index) => (index % 2 ? element("bdi", { text: part }) : part));
  return element("pre", { tabindex: "0" }, ...parts, element("span", { class: "end" }));
}

/** What asks the user. */
export interface Asking {
  /** Ask; `onAnswer` is called in the user's own press. */
  ask: (asker: ViewAgent, question: Ask, onAnswer: (value: Answer) => void) => void;
  withdraw: (asker: ViewAgent, id: number) => void;
  /** Withdraw everything that one asks. */
  clear: (asker: ViewAgent) => void;
}

/** What is on a card. */
interface Card {
  readonly title: Nodes;
  readonly body: Nodes;
  /**
   * The label and the value of each button; undefined: it cannot be answered so yet. The last one is
   * the answer of the key Escape.
   */
  readonly answers: readonly (readonly [
    label: string,
    value: Answer | (() => Answer | undefined),
  ])[];
}

const REST = "There is more. Scroll to its end to agree.";
const REFUSE = ["Refuse", false] as const;
const REFUSES = "refuses"; // the class of a button
const NO_SECRETS = "What you enter goes to the server. It must not ask for passwords or keys here.";

const WITHDRAWN = (): Card => ({
  title: ["That question was withdrawn"],
  body: [paragraph("Whoever asked does not need an answer any more.")],
  answers: [["Next question", false]],
});

/** The card of a question; undefined for a kind that is not known here. `send` presses its first button. */
function cardOf(question: Question, send: () => void): Card | undefined {
  switch (question.kind) {
    case "elicit":
      return elicitCard(question, send);
    case "approve":
      return approvalCard(question);
    case "link": {
      const { href, host } = parsed(question.url);
      const isMail = question.url.startsWith("mailto:");
      return {
        title: [isMail ? "Write this mail?" : `Open ${host}?`],
        body: [paragraph("The View wants to open:"), verbatim(href)],
        answers: [["Open", true], REFUSE],
      };
    }
    case "download": {
      const { files } = question;
      const lines = files.map((file) => `${file.name}  (${sized(file.bytes)})`);
      return {
        title: [files.length === 1 ? "Save this file?" : `Save ${files.length} files?`],
        body: [paragraph("The View wants to save:"), verbatim(lines.join("\n"))],
        answers: [["Save", true], REFUSE],
      };
    }
    case "pin": {
      const what = "It would not be closed to make room for others, until you close it.";
      const { reason } = question;
      const why = reason ? [paragraph("The View says why:"), quoted(reason)] : [];
      return {
        title: ["Keep this View open?"],
        body: [paragraph(what), ...why],
        answers: [["Keep open", true], REFUSE],
      };
    }
    case "mode": {
      const where = question.mode === "pip" ? "in the corner of the page" : "over the whole page";
      return {
        title: [`Show this View ${where}?`],
        body: [paragraph("The View asks for it. You can take it back with the buttons above it.")],
        answers: [["Show", true], REFUSE],
      };
    }
    default:
      return undefined;
  }
}

/** What a server asks: it opens a page, or sends the server a form, only after the user said so. */
function elicitCard(question: QuestionKinds["elicit"], send: () => void): Card {
  const { message, url, fields } = question;
  const words = message ? [paragraph("The server says:"), quoted(message)] : [];
  const refusals = [
    ["Decline", false],
    ["Cancel", "cancel"],
  ] as const;
  if (url !== null) {
    const { href, host } = parsed(url);
    return {
      title: [`Open ${host}?`],
      body: [...words, paragraph("The server wants you to visit:"), verbatim(href)],
      answers: [["Open", true], ...refusals],
    };
  }
  const { form, read } = questionForm(fields, send);
  return {
    title: ["The server asks you"],
    body: [...words, form, paragraph(NO_SECRETS)],
    answers: [["Send", read], ...refusals],
  };
}

function approvalCard(question: QuestionKinds["approve"]): Card {
  const { tool, by, opens, drives, arguments: given, changed, granted = [] } = question;
  const { description } = question;
  const name = element("code", { text: tool });
  const caller = by === "view" ? "Let the View call its server's " : "Let the model call ";
  const asker = drives ? "Let the model use this View: " : caller;
  const body: Nodes = [];
  if (description && !drives) {
    body.push(paragraph(`The ${opens ? "server" : "View"} says what it does:`));
    body.push(quoted(description));
  }
  if (Object.keys(given).length > 0) {
    body.push(paragraph(drives ? "It is outlined there:" : "It is called with:"));
    body.push(verbatim(JSON.stringify(given, null, 2)));
  } else if (drives)
    body.push(paragraph("It reads what is on the page, with what you typed there."));
  else body.push(paragraph("It is called without arguments."));
  if (changed) {
    const why = "It has changed since, so you are asked again.";
    body.push(paragraph(`You always allowed this tool. ${why}`));
  }
  if (granted.length) body.push(paragraph(`You always allow this View: ${granted.join(", ")}.`));
  return {
    title: opens ? ["Let ", name, " open a View?"] : [asker, name, "?"],
    body,
    answers: [
      ["Allow", "allow"],
      ["Always allow", "always"],
      ["Refuse", "deny"],
    ],
  };
}

/** The link as the browser will open it: a host in letters that look like others is spelled out. */
function parsed(url: string): { href: string; host: string } {
  try {
    return new URL(url);
  } catch {
    return { href: url, host: "this link" };
  }
}

/** A question, shown or waiting. */
interface Entry {
  readonly asker: ViewAgent;
  readonly question: Ask;
  readonly card: Card;
  readonly onAnswer: (value: Answer) => void;
}

/** A card on the page. */
interface ShownCard {
  /** What it asks; undefined for the note that a question was withdrawn. */
  readonly entry: Entry | undefined;
  readonly section: HTMLElement;
  readonly buttons: HTMLButtonElement[];
  /** The ends of texts that were not visible yet. */
  readonly unread: Set<Element>;
  /** Says that there are such. */
  readonly rest: HTMLElement;
  /** Says how many questions wait. */
  readonly more: HTMLElement;
}

/** What a page does with the questions that are asked. */
export interface QuestionsPage {
  /** A question is shown now, or none: the frame of the View it is about, if any. */
  onShown: (asker?: ViewAgent, question?: Question) => HTMLIFrameElement | undefined;
  /** How many questions there are. */
  onCount?: (count: number) => void;
}

export class Questions implements Asking {
  readonly #place: HTMLElement;
  readonly #page: QuestionsPage;
  readonly #list = element("div", { class: "questions", "aria-live": "polite" });
  #waiting: Entry[] = [];
  #shown: ShownCard | undefined;
  #quiet = QUIET; // how long it has to be quiet
  #since = 0; // since when it is
  #looking: ReturnType<typeof setInterval> | undefined;
  #isReady = false;
  readonly #reading = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.#shown?.unread.delete(target);
    }
    if (this.#shown) {
      const { rest, unread } = this.#shown;
      if (unread.size > 0) rest.hidden = false;
      else rest.style.visibility = "hidden"; // nothing moves
    }
    this.#look();
  });

  /** `place` is where a question is shown. */
  constructor(place: HTMLElement, page: QuestionsPage) {
    this.#place = place;
    this.#page = page;
    rootOf(place).append(this.#list);
    const onPressed = (): void => {
      // A press counts once the buttons work; before that, it restarts the waiting time.
      if (!this.#isReady) this.#disturb();
    };
    addEventListener("pointerdown", onPressed, true);
    addEventListener(
      "keydown",
      ({ key }) => {
        if (key === "Enter" || key === " ") onPressed();
      },
      true,
    );
    addEventListener("resize", () => this.#disturb());
  }

  ask(asker: ViewAgent, question: Ask, onAnswer: (value: Answer) => void): void {
    const card = cardOf(question, () => this.#shown?.buttons[0]?.click());
    if (!card) return;
    this.#waiting.push({ asker, question, card, onAnswer });
    if (this.#shown) this.#count();
    else this.#showNext();
  }

  withdraw(asker: ViewAgent, id: number): void {
    this.#remove((entry) => entry.asker === asker && entry.question.id === id);
  }

  clear(asker: ViewAgent): void {
    this.#remove((entry) => entry.asker === asker);
  }

  #remove(isGone: (entry: Entry) => boolean): void {
    this.#waiting = this.#waiting.filter((entry) => !isGone(entry));
    const isWanted = this.#shown?.entry && !isGone(this.#shown.entry);
    if (!this.#shown || isWanted) this.#count();
    else if (this.#waiting.length === 0) this.#showNext();
    else if (this.#shown.entry) this.#show(WITHDRAWN());
    else this.#count();
  }

  #answer(given: Answer | (() => Answer | undefined)): void {
    const value = typeof given === "function" ? given() : given;
    if (value === undefined) return;
    const entry = this.#shown?.entry;
    this.#showNext();
    entry?.onAnswer(value);
  }

  // --- the card -------------------------------------------------------------------------------------

  #showNext(): void {
    const next = this.#waiting.shift();
    if (next) this.#show(next.card, next);
    else this.#showNothing();
  }

  #showNothing(): void {
    this.#clearCard();
    this.#page.onShown();
    this.#count();
  }

  #clearCard(): void {
    clearInterval(this.#looking);
    this.#reading.disconnect();
    this.#shown?.section.remove();
    this.#shown = undefined;
  }

  #show(card: Card, entry?: Entry): void {
    const focused = focusedElement();
    this.#clearCard();
    const shown = this.#makeCard(card, entry);
    this.#shown = shown;
    const frame = this.#page.onShown(entry?.asker, entry?.question);
    this.#quiet = focused instanceof HTMLIFrameElement ? QUIET_AFTER_VIEW : QUIET;
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY);
    this.#list.append(shown.section);
    for (const end of shown.unread) this.#reading.observe(end);
    // Only the View the user is typing into may take the keyboard from it, by what it asks.
    const isOwn = entry?.question.kind !== "approve" && focused === frame;
    if (isOwn || !focused || focused === document.body) shown.section.focus();
    this.#disturb();
    this.#count();
  }

  #makeCard({ title, body, answers }: Card, entry?: Entry): ShownCard {
    const heading = element("h2", {}, ...title);
    const more = element("span", { class: "more" });
    const buttons = answers.map(([text, value], index) => {
      const refuses = value === false || index === answers.length - 1;
      const kind = !index ? "main" : refuses ? REFUSES : "";
      const button = element("button", { type: "button", text, class: kind });
      button.addEventListener("click", () => {
        if (button.ariaDisabled !== "true") this.#answer(value);
      });
      return button;
    });
    const unread = new Set(
      body.flatMap((part) => (part instanceof Element ? [...part.querySelectorAll(".end")] : [])),
    );
    const rest = element("p", { class: "rest", text: REST, hidden: "" });
    const whose = entry?.question.server ? attribution(entry.question) : "";
    const label = heading.textContent;
    const section = element(
      "section",
      {
        class: "question",
        part: "question",
        role: "alertdialog",
        "aria-label": label,
        tabindex: "-1",
      },
      element("div", { class: "asker" }, whose, more),
      heading,
      ...body,
      rest,
      element("div", { class: "buttons" }, ...buttons),
    );
    section.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#answer(answers.at(-1)![1]);
    });
    return { entry, section, buttons, unread, rest, more };
  }

  #count(): void {
    const more = this.#waiting.length;
    if (this.#shown) this.#shown.more.textContent = more ? `and ${more} more` : "";
    this.#place.toggleAttribute("data-asking", Boolean(this.#shown));
    this.#page.onCount?.(more + (this.#shown?.entry ? 1 : 0));
  }

  // --- when it can be answered ----------------------------------------------------------------------

  #disturb(): void {
    this.#since = performance.now();
    this.#look();
  }

  /** While a View has the focus, no event says that another window is used: poll. */
  #look(): void {
    const now = performance.now();
    if (document.hidden || !document.hasFocus()) this.#since = now;
    this.#isReady = now - this.#since >= this.#quiet;
    // Not `disabled`, which would take the keyboard's focus away.
    const { buttons = [], unread } = this.#shown ?? {};
    for (const button of buttons) {
      const isRead = unread?.size === 0 || button.className === REFUSES;
      button.ariaDisabled = String(!this.#isReady || !isRead);
    }
  }
}
