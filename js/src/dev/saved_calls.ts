/** The last arguments of each tool, and the calls that the author saved, kept by this browser. */
import { isObject, type JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import { button } from "./parts.js";

interface Saved {
  tool: string;
  arguments: JsonObject;
}

interface Kept {
  last: Record<string, JsonObject>;
  saved: Saved[];
}

const MAX_SAVED = 50;

function read(key: string): Kept {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    const { last, saved } = Object(found) as Partial<Kept>;
    return {
      last: isObject(last) ? last : {},
      saved: Array.isArray(saved) ? saved.filter(({ arguments: args }) => isObject(args)) : [],
    };
  } catch {
    return { last: {}, saved: [] };
  }
}

export class SavedCalls {
  readonly #choose: (tool: string, args: JsonObject) => void;
  #key = "";
  #kept: Kept = { last: {}, saved: [] };
  #place: HTMLElement | undefined;
  #shown = "";

  /** `choose` is called with a saved call that the author wants. */
  constructor(choose: (tool: string, args: JsonObject) => void) {
    this.#choose = choose;
  }

  /** Keep those of this server: the page of another one may have the same port another time. */
  of(server: string): void {
    this.#key = `transom-dev ${server}`;
    this.#kept = read(this.#key);
  }

  last(tool: string): JsonObject | undefined {
    return Object.hasOwn(this.#kept.last, tool) ? this.#kept.last[tool] : undefined;
  }

  remember(tool: string, args: JsonObject): void {
    this.#kept.last[tool] = args;
    this.#store();
  }

  save(tool: string, args: JsonObject): void {
    const text = JSON.stringify(args);
    const others = this.#kept.saved.filter(
      (each) => each.tool !== tool || JSON.stringify(each.arguments) !== text,
    );
    this.#kept.saved = [{ tool, arguments: args }, ...others].slice(0, MAX_SAVED);
    this.#store();
    this.#fill();
  }

  #store(): void {
    try {
      localStorage.setItem(this.#key, JSON.stringify(this.#kept));
    } catch {
      // the browser has no room: they last until the page is closed
    }
  }

  /** The saved calls of a tool. */
  element(tool: string): HTMLElement {
    this.#place = element("div", { class: "saved" });
    this.#shown = tool;
    this.#fill();
    return this.#place;
  }

  #fill(): void {
    const calls = this.#kept.saved.filter(({ tool }) => tool === this.#shown);
    const rows = calls.map((saved) => {
      const text = JSON.stringify(saved.arguments);
      const use = button(text, () => this.#choose(saved.tool, saved.arguments));
      const forget = button(
        "✕",
        () => {
          this.#kept.saved = this.#kept.saved.filter((each) => each !== saved);
          this.#store();
          this.#fill();
        },
        { "aria-label": `Forget ${text}`, class: "remove" },
      );
      return element("li", { class: "row" }, use, forget);
    });
    this.#place?.replaceChildren(
      ...(rows.length > 0
        ? [element("h4", { text: "Saved calls" }), element("ul", { class: "tools" }, ...rows)]
        : []),
    );
  }
}
