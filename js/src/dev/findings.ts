/** What is wrong: with the server's contract, and in the View as it runs. */
import { element } from "../views_bundle.js";
import { diagnosisPart } from "./diagnosis.js";
import type { DevHost } from "./host.js";
import { addNewest, badge, button, folded, notes, placeOf, timeOf, type Placed } from "./parts.js";

interface Found extends Placed {
  at: number;
  view: string;
  kind: string;
  message: string;
  level?: string;
  tool?: string | null;
  stack?: string | null;
}

interface Contract {
  state: "checking" | "done" | "failed";
  reason: string;
  checked?: number;
  findings: {
    rule: string;
    severity: "error" | "warn" | "info";
    subject: string;
    message: string;
    title: string;
    explanation: string;
    clause: string;
  }[];
}

const MAX_SHOWN = 500;
const SEVERITY = { error: "bad", warn: "warn", info: "" };
const QUIET = ["log"]; // kinds that are no problem by themselves

export class Findings {
  readonly #contract = element("div", { class: "group" });
  readonly #live = element("ul", { class: "findings" });
  readonly #none = element("p", { class: "note", text: "Nothing went wrong in a View so far." });
  readonly #onCount: (count: number) => void;
  readonly #reveal: (at: number, view: string, words: string) => void;
  #broken = 0; // rules
  #found = 0; // in Views

  /** `reveal` shows the message that was under way at a moment. */
  constructor(
    host: DevHost,
    place: HTMLElement,
    onCount: (count: number) => void,
    reveal: (at: number, view: string, words: string) => void,
  ) {
    this.#onCount = onCount;
    this.#reveal = reveal;
    place.append(
      element("h3", { text: "Why does a View stay blank?" }),
      diagnosisPart(host),
      element("h3", { text: "In Views" }),
      this.#none,
      this.#live,
      element("h3", { text: "The contract of MCP Apps" }),
      this.#contract,
    );
    host.onPanel("contract", (contract: Contract) => this.#showContract(contract));
    host.onLog(
      "findings",
      (entries: Found[]) => this.#add(entries),
      () => {
        this.#live.replaceChildren();
        this.#found = 0;
        this.#count();
      },
    );
  }

  #count(): void {
    this.#none.hidden = this.#live.childElementCount > 0;
    this.#onCount(this.#broken + this.#found);
  }

  #add(entries: Found[]): void {
    this.#found += entries.filter(({ kind }) => !QUIET.includes(kind)).length;
    const rows = entries.map((found) => this.#line(found));
    addNewest(this.#live, rows, MAX_SHOWN);
    this.#count();
  }

  #line(found: Found): HTMLElement {
    const { at, view, kind, message, tool, stack, level } = found;
    const isBad = !QUIET.includes(kind);
    const place = placeOf(found);
    const under = button("Message", () => this.#reveal(at, view, message), {
      title: "Show the message that was under way",
      "aria-label": `Message before: ${message}`,
    });
    return element(
      "li",
      { class: "row" },
      badge(level ?? kind, isBad ? "bad" : ""),
      element("span", { class: "time", text: timeOf(at) }),
      element("bdi", { class: "words", text: tool ? `${tool}: ${message}` : message }),
      ...(place ? [element("span", { class: "code quiet", text: place })] : []),
      under,
      ...(stack ? [folded("Stack", () => [element("pre", { text: stack })])] : []),
    );
  }

  #showContract({ state, reason, findings, checked }: Contract): void {
    this.#broken = findings.filter(({ severity }) => severity === "error").length;
    const words = {
      checking: "Checking…",
      failed: `It could not be checked: ${reason}`,
      done: findings.length > 0 ? "" : `All ${checked} rules that were checked are kept.`,
    }[state];
    const rows = findings.map(({ rule, severity, subject, message, title, explanation, clause }) =>
      element(
        "li",
        {},
        element(
          "p",
          { class: "row" },
          badge(severity, SEVERITY[severity]),
          element("span", { class: "code", text: `${rule} ${subject}` }),
          element("bdi", { class: "words", text: message }),
        ),
        folded(title, () => notes(explanation, clause)),
      ),
    );
    this.#contract.replaceChildren(
      ...(words ? [element("p", { class: "note", role: "status", text: words })] : []),
      element("ul", { class: "findings" }, ...rows),
    );
    this.#count();
  }
}
