/** What Views said to the model and the user, what was allowed, and the audit. */
import type { JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { addNewest, badge, folded, jsonBlock, lasted, notes, timeOf } from "./parts.js";
import { resultParts } from "./result.js";

interface Context {
  view_id: string;
  when: number;
  content: unknown[];
  structured_content: unknown;
}

interface Message {
  at: number;
  view: string;
  content: unknown[];
}

interface Audited {
  when: number;
  event: string;
  outcome: string;
  view?: string | null;
  tool?: string | null;
  detail?: string | null;
  ms?: number | null;
}

const MAX_SHOWN = 300;

export class Contexts {
  readonly #contexts = element("div", { class: "group" });
  readonly #messages = element("ul", { class: "findings" });
  readonly #grants = element("p", { class: "note" });

  constructor(host: DevHost, place: HTMLElement) {
    place.append(
      element("h3", { text: "Model context" }),
      this.#contexts,
      element("h3", { text: "Messages to the conversation" }),
      this.#messages,
      element("h3", { text: "Always allowed" }),
      this.#grants,
    );
    this.#showContexts([]);
    host.onPanel("context", (contexts: Context[]) => this.#showContexts(contexts));
    host.onPanel("view", (view: { grants: { tool: string; by: string }[] } | null) => {
      const grants = (view?.grants ?? []).map(({ tool, by }) => `${tool} (${by})`);
      this.#grants.textContent = grants.join(", ") || "Nothing.";
    });
    host.onLog(
      "messages",
      (entries: Message[]) => {
        const rows = entries.map(({ at, view, content }) => {
          const time = element("span", { class: "time", text: timeOf(at) });
          const about = element("p", { class: "row" }, time, badge(view));
          return element("li", {}, about, ...resultParts({ content }));
        });
        addNewest(this.#messages, rows, MAX_SHOWN);
      },
      () => this.#messages.replaceChildren(),
    );
  }

  #showContexts(contexts: Context[]): void {
    this.#contexts.replaceChildren(
      ...notes(contexts.length === 0 ? "No View has sent any." : null),
      ...contexts.flatMap(({ view_id, when, content, structured_content }) => [
        element("p", { class: "row" }, badge(view_id), element("span", { text: timeOf(when) })),
        ...resultParts({
          content,
          ...(structured_content == null ? {} : { structuredContent: structured_content }),
        }),
      ]),
    );
  }
}

export class Audit {
  readonly #rows = element("ul", { class: "findings" });

  constructor(host: DevHost, place: HTMLElement) {
    place.append(this.#rows);
    host.onLog(
      "audit",
      (entries: (Audited & JsonObject)[]) => {
        const rows = entries.map((entry) => this.#line(entry));
        addNewest(this.#rows, rows, MAX_SHOWN);
      },
      () => this.#rows.replaceChildren(),
    );
  }

  #line(entry: Audited & JsonObject): HTMLElement {
    const { when, event, outcome, view, tool, detail, ms } = entry;
    const isBad = ["refused", "failed", "denied", "error"].includes(outcome);
    const words = [view, tool, detail].filter(Boolean).join(" · ");
    return element(
      "li",
      { class: "row" },
      element("span", { class: "time", text: timeOf(when) }),
      badge(`${event} ${outcome}`, isBad ? "bad" : ""),
      element("bdi", { class: "words", text: words }),
      ...lasted(ms),
      folded("Details", () => [jsonBlock(entry, "Details")]),
    );
  }
}
