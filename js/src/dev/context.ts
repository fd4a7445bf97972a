/** What Views said to the model and the user, what was allowed, and the audit. */
import type { JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { badge, folded, jsonBlock, timeOf } from "./parts.js";
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
    host.onPanel("context", (contexts: Context[]) => {
      this.#showContexts(contexts);
    });
    host.onPanel("view", (view: { grants: { tool: string; by: string }[] } | null) => {
      const grants = (view?.grants ?? []).map(({ tool, by }) => `${tool} (${by})`);
      this.#grants.textContent = grants.join(", ") || "Nothing.";
    });
    host.onLog(
      "messages",
      (entries: Message[]) => {
        for (const { at, view, content } of entries) {
          const about = element(
            "p",
            { class: "row" },
            element("span", { class: "time", text: timeOf(at) }),
            badge(view),
          );
          this.#messages.prepend(element("li", {}, about, ...resultParts({ content })));
        }
        while (this.#messages.childElementCount > MAX_SHOWN)
          this.#messages.lastElementChild!.remove();
      },
      () => {
        this.#messages.replaceChildren();
      },
    );
  }

  #showContexts(contexts: Context[]): void {
    const none = element("p", { class: "note", text: "No View has sent any." });
    this.#contexts.replaceChildren(
      ...(contexts.length === 0 ? [none] : []),
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
        for (const entry of entries) this.#rows.prepend(this.#line(entry));
        while (this.#rows.childElementCount > MAX_SHOWN) this.#rows.lastElementChild!.remove();
      },
      () => {
        this.#rows.replaceChildren();
      },
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
      ...(ms == null ? [] : [element("span", { class: "quiet", text: `${ms} ms` })]),
      folded("Details", () => [jsonBlock(entry, "Details")]),
    );
  }
}
