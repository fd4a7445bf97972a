/**
 * What the user is asked: whether the model may call a tool, whether a link is opened, whether
 * files are saved. A card shows what is asked, as text. Its buttons can be pressed a moment after it
 * has appeared: nobody answers a question by clicking on what was there before.
 */
import { element } from "./views.js";

const ARMED_AFTER = 500;
const MAX_SHOWN = 20_000;

const cut = (text) =>
  text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}\n… (${text.length} characters)`;

const sized = (bytes) => {
  const units = ["bytes", "KB", "MB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < 2; unit += 1) bytes /= 1024;
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
};

const whose = ({ view, shown = view, server, client }) =>
  `View ${shown}, from the server ${server}${client ? `, for ${client}` : ""}`;

const KINDS = {
  approve: {
    title: ({ tool }) => `Let the model call ${tool}?`,
    say: (question) =>
      `A tool of the ${whose(question)}.` +
      (question.changed ? " You allowed it before; it has changed since." : ""),
    show: ({ arguments: given }) => cut(JSON.stringify(given, null, 2)),
    answers: [["Allow", "allow"], ["Always allow", "always"], ["Refuse", "deny"]],
  },
  link: {
    title: ({ url }) => (url.startsWith("mailto:") ? "Write this mail?" : `Open ${parsed(url).host}?`),
    say: (question) => `The ${whose(question)}, wants to open:`,
    show: ({ url }) => parsed(url).href,
    answers: [["Open", true], ["Refuse", false]],
  },
  download: {
    title: ({ files }) => (files.length === 1 ? "Save this file?" : `Save ${files.length} files?`),
    say: (question) => `The ${whose(question)}, wants to save:`,
    show: ({ files }) => cut(files.map((f) => `${f.name}  (${sized(f.bytes)})`).join("\n")),
    answers: [["Save", true], ["Refuse", false]],
  },
};

/** The link as the browser will open it: a host in letters that look like others is spelled out. */
function parsed(url) {
  try {
    return new URL(url);
  } catch {
    return { href: url, host: "this link" };
  }
}

export class Questions {
  #cards = new Map();
  #place;
  #onAnswer;

  /** `onAnswer(question, value)` is called in the user's own click. */
  constructor(place, onAnswer) {
    this.#place = place;
    this.#onAnswer = onAnswer;
  }

  ask(question) {
    const kind = KINDS[question.kind];
    if (!kind) return;
    const answer = (value) => {
      this.withdraw(question.id);
      this.#onAnswer(question, value);
    };
    const refusal = kind.answers.at(-1)[1];
    const buttons = kind.answers.map(([text, value], index) => {
      const attributes = { type: "button", text, class: index ? "" : "main", disabled: "" };
      const button = element("button", attributes);
      button.addEventListener("click", () => answer(value));
      return button;
    });
    const title = kind.title(question);
    const card = element(
      "section",
      { class: "question", role: "alertdialog", "aria-label": title, tabindex: "-1" },
      element("h2", { text: title }),
      element("p", { text: kind.say(question) }),
      element("pre", { text: kind.show(question), tabindex: "0" }),
      element("div", { class: "buttons" }, ...buttons),
    );
    card.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      answer(refusal);
    });
    setTimeout(() => buttons.forEach((button) => button.removeAttribute("disabled")), ARMED_AFTER);
    this.#cards.set(question.id, card);
    this.#place.append(card);
    // What the model wants must not take the keyboard from a user who is typing into a View.
    if (question.kind !== "approve" || document.activeElement === document.body) card.focus();
    this.#count();
  }

  withdraw(id) {
    this.#cards.get(id)?.remove();
    this.#cards.delete(id);
    this.#count();
  }

  clear() {
    for (const id of [...this.#cards.keys()]) this.withdraw(id);
  }

  #count() {
    const asked = this.#place.childElementCount; // by all agents
    document.title = asked ? `(${asked}) Transom` : "Transom";
  }
}
