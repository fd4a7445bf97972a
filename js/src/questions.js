/**
 * Questions to the user: whether the model may call a tool, whether a link is
 * opened, whether files are saved, whether a View stays. A press that was meant for something else answers nothing:
 *
 * 1. One question is shown at a time. The others wait, and do not move it.
 * 2. When the question that is shown is withdrawn and others wait, a note takes its place. The next
 *    one is shown when the user asks for it.
 * 3. Buttons work only after a short time without a press, in which the question was visible. That
 *    time is longer if the user was using a View, which could guess the next press.
 */
import { attribution, element, rootOf } from "./views.js";

const QUIET = 500; // milliseconds
const QUIET_AFTER_VIEW = 1500;
const LOOK_EVERY = 100;
const MAX_SHOWN = 20_000;

const cut = (text) =>
  text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}\n… (${text.length} characters)`;

const sized = (bytes) => {
  const units = ["bytes", "KB", "MB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < 2; unit += 1) bytes /= 1024;
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
};

const paragraph = (text) => element("p", { text });
const verbatim = (text) => element("pre", { text: cut(text), tabindex: "0" });

const KINDS = {
  approve: {
    title: ({ tool, by, opens }) => [
      opens ? "Let " : by === "view" ? "Let the View call its server's " : "Let the model call ",
      element("code", { text: tool }),
      opens ? " open a View?" : "?",
    ],
    body: (question) => [...described(question), ...withArguments(question), ...granted(question)],
    answers: [["Allow", "allow"], ["Always allow", "always"], ["Refuse", "deny"]],
  },
  link: {
    title: ({ url }) => [url.startsWith("mailto:") ? "Write this mail?" : `Open ${parsed(url).host}?`],
    body: ({ url }) => [paragraph("The View wants to open:"), verbatim(parsed(url).href)],
    answers: [["Open", true], ["Refuse", false]],
  },
  download: {
    title: ({ files }) => [files.length === 1 ? "Save this file?" : `Save ${files.length} files?`],
    body: ({ files }) => [
      paragraph("The View wants to save:"),
      verbatim(files.map((file) => `${file.name}  (${sized(file.bytes)})`).join("\n")),
    ],
    answers: [["Save", true], ["Refuse", false]],
  },
  pin: {
    title: () => ["Keep this View open?"],
    body: ({ reason }) => [
      paragraph("It would not be closed to make room for others, until you close it."),
      ...(reason ? [paragraph("The View says why:"), element("blockquote", { text: reason })] : []),
    ],
    answers: [["Keep open", true], ["Refuse", false]],
  },
  withdrawn: {
    title: () => ["That question was withdrawn"],
    body: () => [paragraph("Whoever asked does not need an answer any more.")],
    answers: [["Next question", null]],
  },
};

const WITHDRAWN = { asker: null, question: { kind: "withdrawn" }, onAnswer() {} };

/** The link as the browser will open it: a host in letters that look like others is spelled out. */
function parsed(url) {
  try {
    return new URL(url);
  } catch {
    return { href: url, host: "this link" };
  }
}

function described({ description, opens }) {
  if (!description) return [];
  const who = opens ? "server" : "View";
  return [paragraph(`The ${who} says what it does:`), element("blockquote", { text: description })];
}

function withArguments({ arguments: given }) {
  if (Object.keys(given).length === 0) return [paragraph("It is called without arguments.")];
  return [paragraph("It is called with:"), verbatim(JSON.stringify(given, null, 2))];
}

function granted({ changed, granted: tools = [] }) {
  const lines = [];
  if (changed) lines.push("You always allowed this tool. It has changed since, so you are asked again.");
  if (tools.length) lines.push(`You always allow this View: ${tools.join(", ")}.`);
  return lines.map(paragraph);
}

/** The focused element, also inside shadow roots. */
function focusedElement() {
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  return focused;
}

export class Questions {
  #place;
  #list = element("div", { class: "questions", "aria-live": "polite" });
  #onShown;
  #onCount;
  #waiting = [];
  #shown = null;
  #card = null;
  #buttons = [];
  #more = null;
  #quiet = QUIET; // how long it has to be quiet
  #since = 0; // since when it is
  #looking = 0;
  #ready = false;

  /**
   * @param {HTMLElement} place where the question is shown
   * @param {(asker: object, question: object) => HTMLIFrameElement | undefined} onShown called with the
   *   question that is shown now, without arguments when none is; the frame of the View it is about
   * @param {(count: number) => void} onCount called with how many questions there are
   */
  constructor(place, onShown, onCount = () => {}) {
    this.#place = place;
    this.#onShown = onShown;
    this.#onCount = onCount;
    rootOf(place).append(this.#list);
    addEventListener("pointerdown", () => this.#pressed(), true);
    addEventListener("keydown", ({ key }) => ["Enter", " "].includes(key) && this.#pressed(), true);
    addEventListener("resize", () => this.#disturb());
  }

  /** Ask; `onAnswer(value)` is called in the user's own press. */
  ask(asker, question, onAnswer) {
    if (!KINDS[question.kind]) return;
    this.#waiting.push({ asker, question, onAnswer });
    if (this.#shown) this.#count();
    else this.#show(this.#waiting.shift());
  }

  withdraw(asker, id) {
    this.#remove((entry) => entry.asker === asker && entry.question.id === id);
  }

  /** Withdraw everything that one asks. */
  clear(asker) {
    this.#remove((entry) => entry.asker === asker);
  }

  #remove(isGone) {
    this.#waiting = this.#waiting.filter((entry) => !isGone(entry));
    const others = this.#waiting.length > 0;
    if (this.#shown && isGone(this.#shown)) this.#show(others ? WITHDRAWN : null);
    else if (this.#shown === WITHDRAWN && !others) this.#show(null);
    else this.#count();
  }

  #answer(value) {
    const { onAnswer } = this.#shown;
    this.#show(this.#waiting.shift() ?? null);
    onAnswer(value);
  }

  // --- the card -------------------------------------------------------------------------------

  #show(entry) {
    const focused = focusedElement();
    this.#shown = entry;
    this.#card?.remove();
    this.#card = entry && this.#makeCard(entry.question);
    const frame = entry ? this.#onShown(entry.asker, entry.question) : this.#onShown();
    clearInterval(this.#looking);
    if (this.#card) {
      this.#quiet = focused instanceof HTMLIFrameElement ? QUIET_AFTER_VIEW : QUIET;
      this.#looking = setInterval(() => this.#look(), LOOK_EVERY);
      this.#list.append(this.#card);
      // Only the View the user is typing into may take the keyboard from it, by what it asks.
      const own = entry.question.kind !== "approve" && focused === frame;
      if (own || !focused || focused === document.body) this.#card.focus();
      this.#disturb();
    }
    this.#count();
  }

  #makeCard(question) {
    const { title, body, answers } = KINDS[question.kind];
    const heading = element("h2", {}, ...title(question));
    this.#more = element("span", { class: "more" });
    this.#buttons = answers.map(([text, value], index) => {
      const button = element("button", { type: "button", text, class: index ? "" : "main" });
      button.addEventListener("click", () => this.#ready && this.#answer(value));
      return button;
    });
    const card = element(
      "section",
      { class: "question", part: "question", role: "alertdialog", "aria-label": heading.textContent, tabindex: "-1" },
      element("div", { class: "asker" }, question.server ? attribution(question) : "", this.#more),
      heading,
      ...body(question),
      element("div", { class: "buttons" }, ...this.#buttons),
    );
    card.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#answer(answers.at(-1)[1]);
    });
    return card;
  }

  #count() {
    const more = this.#waiting.length;
    const asked = more + (this.#shown && this.#shown !== WITHDRAWN ? 1 : 0);
    if (this.#card) this.#more.textContent = more ? `and ${more} more` : "";
    this.#place.toggleAttribute("data-asking", Boolean(this.#card));
    this.#onCount(asked);
  }

  // --- when it can be answered ----------------------------------------------------------------

  /** A press counts once the buttons work; before that, it restarts the waiting time. */
  #pressed() {
    if (!this.#ready) this.#disturb();
  }

  #disturb() {
    this.#since = performance.now();
    this.#look();
  }

  /** While a View has the focus, no event says that another window is used: poll. */
  #look() {
    const now = performance.now();
    if (document.hidden || !document.hasFocus()) this.#since = now;
    this.#ready = now - this.#since >= this.#quiet;
    // Not `disabled`, which would take the keyboard's focus away.
    for (const button of this.#buttons) button.ariaDisabled = String(!this.#ready);
  }
}
