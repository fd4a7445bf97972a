/** The View that is open: its tools and how they change, what a model is given, and what it would read. */
import type { JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import { ArgumentForm } from "./form.js";
import type { DevHost } from "./host.js";
import { badge, button, folded, jsonBlock, notes, plural, textBlock } from "./parts.js";
import { aboutTool } from "./tools.js";

interface ViewTool {
  name: string;
  state: "enabled" | "disabled" | "unavailable";
  reason?: string | null;
  lazy?: boolean;
  visibility?: unknown[];
  description?: string;
  inputSchema?: JsonObject;
  annotations?: JsonObject;
}

interface ShownView {
  id: string;
  state: string;
  reason: string;
  uri: string;
  app: { name: string; version: string } | null;
  context: JsonObject | null;
  tools: ViewTool[];
  changes: {
    added: string[];
    removed: string[];
    changed: { name: string; before: JsonObject; after: JsonObject }[];
  };
  leftOut: string;
}

interface NamedTools {
  naming: string;
  tools: unknown[];
  bytes: number;
  estimatedTokens: number;
}

const STATES = { enabled: "good", disabled: "warn", unavailable: "bad" };

let calls = 0;

export class ViewTools {
  readonly #host: DevHost;
  readonly #about = element("div", { class: "group" });
  readonly #list = element("ul", { class: "tools" });
  readonly #changes = element("div", { class: "group", role: "status" });
  readonly #form = element("form", { class: "group", "aria-label": "Call of a View tool" });
  readonly #surface = element("div", { class: "group" });
  readonly #snapshot = element("div", { class: "group" });
  readonly #model = element("div", { class: "group" });
  #view: ShownView | null = null;
  #chosen = "";
  #definition = ""; // that the form was made from

  constructor(host: DevHost, place: HTMLElement) {
    this.#host = host;
    this.#form.noValidate = true;
    this.#model.append(
      folded("What the model is given", () => [
        button("Measure", () => void this.#measure()),
        this.#surface,
      ]),
      folded("What a model would read of the page", () => [
        button("Read", () => void this.#read()),
        this.#snapshot,
      ]),
    );
    place.append(this.#about, this.#changes, this.#list, this.#form, this.#model);
    host.onPanel("view", (view: ShownView | null) => this.#show(view));
    this.#show(null);
  }

  #show(view: ShownView | null): void {
    this.#view = view;
    this.#model.hidden = this.#list.hidden = !view;
    if (!view) {
      this.#chosen = this.#definition = "";
      this.#form.replaceChildren();
      this.#changes.replaceChildren();
      this.#about.replaceChildren(...notes("No View is open."));
      return;
    }
    const { id, state, reason, app, uri, context, leftOut } = view;
    const name = app ? `${app.name} ${app.version}` : "It has not said who it is.";
    this.#about.replaceChildren(
      element("p", { class: "row" }, badge(state, state === "live" ? "good" : "warn"), id),
      ...(reason ? [element("p", { class: "problem", text: reason })] : []),
      ...notes(`${name}\n${uri}`),
      ...(leftOut ? [element("p", { class: "problem", text: `Left out: ${leftOut}` })] : []),
      folded("What it is told of its host", () => [jsonBlock(context, "Host context")]),
    );
    this.#showChanges(view.changes);
    const rows = view.tools.map((tool) => element("li", {}, this.#row(tool)));
    const none = element("li", { class: "note", text: "It has no tools of its own." });
    this.#list.replaceChildren(...(rows.length > 0 ? rows : [none]));
    this.#openForm();
  }

  #row(tool: ViewTool): HTMLElement {
    const { name, state, reason, lazy, visibility = [] } = tool;
    const choose = button(name, () => {
      this.#chosen = this.#chosen === name ? "" : name;
      this.#show(this.#view);
    });
    choose.setAttribute("aria-pressed", String(this.#chosen === name));
    choose.disabled = state === "unavailable";
    const [sole] = visibility;
    const isSole = visibility.length === 1 && typeof sole === "string";
    const only = isSole ? [badge(`${sole} only`)] : [];
    const line = [choose, badge(state, STATES[state]), ...(lazy ? [badge("lazy")] : []), ...only];
    return element("div", {}, element("p", { class: "row" }, ...line), ...notes(reason));
  }

  #showChanges({ added, removed, changed }: ShownView["changes"]): void {
    const isFirst = removed.length === 0 && changed.length === 0 && added.length > 0;
    const all = this.#view!.tools.filter(({ state }) => state === "enabled").length;
    if (isFirst && added.length === all) {
      this.#changes.replaceChildren();
      return;
    }
    const parts: Node[] = [];
    if (added.length > 0) parts.push(...notes(`+ ${added.join(", ")}`));
    if (removed.length > 0) parts.push(...notes(`− ${removed.join(", ")}`));
    for (const { name, before, after } of changed) {
      parts.push(
        folded(`± ${name}`, () => [
          element("h4", { text: "Before" }),
          jsonBlock(before, "Before"),
          element("h4", { text: "Now" }),
          jsonBlock(after, "Now"),
        ]),
      );
    }
    const title = element("h3", { text: "Changed since the last list" });
    this.#changes.replaceChildren(...(parts.length > 0 ? [title, ...parts] : []));
  }

  /** The form of the chosen tool; what is entered stays while the tool is the same. */
  #openForm(): void {
    const tool = this.#view?.tools.find(({ name }) => name === this.#chosen);
    const definition = tool ? JSON.stringify(tool) : "";
    if (definition === this.#definition) return;
    this.#definition = definition;
    if (!tool) {
      this.#form.replaceChildren();
      return;
    }
    const form = new ArgumentForm(tool.inputSchema ?? { type: "object" });
    const problem = element("p", { class: "problem", role: "alert" });
    const call = (asModel: boolean): void => {
      const entered = form.read();
      problem.textContent = "problem" in entered ? entered.problem : "";
      if ("problem" in entered) return;
      calls += 1;
      const about = { tool: tool.name, arguments: entered.value, as_model: asModel };
      this.#host
        .request("view_call", { ...about, call: `view-call-${calls}` })
        .catch((error: unknown) => {
          problem.textContent = (error as Error).message;
        });
    };
    this.#form.onsubmit = (event) => {
      event.preventDefault();
      call(true);
    };
    const asModel = element("button", { class: "primary", text: "Call as the model" });
    const asPage = button("Call as the page", () => call(false));
    this.#form.replaceChildren(
      ...aboutTool(tool),
      form.element,
      problem,
      element("p", { class: "row" }, asModel, asPage),
      folded("Definition", () => [jsonBlock(tool, `Definition of ${tool.name}`)]),
    );
  }

  async #measure(): Promise<void> {
    await this.#ask("surface", this.#surface, (surfaces: NamedTools[]) =>
      surfaces.flatMap(({ naming, tools, bytes, estimatedTokens }) => [
        element("p", { class: "row" }, badge(naming), plural(tools.length, "tool")),
        ...notes(`${bytes} bytes, about ${estimatedTokens} tokens (estimated: 4 bytes each)`),
        folded("Definitions", () => [jsonBlock(tools, `The surface, ${naming}`)]),
      ]),
    );
  }

  async #read(): Promise<void> {
    await this.#ask("snapshot", this.#snapshot, (text: string) => [textBlock(text, "Snapshot")]);
  }

  async #ask(name: string, place: HTMLElement, show: (answer: any) => Node[]): Promise<void> {
    place.replaceChildren(...notes("Asking…"));
    try {
      place.replaceChildren(...show(await this.#host.request(name)));
    } catch (error) {
      const text = (error as Error).message;
      place.replaceChildren(element("p", { class: "problem", role: "alert", text }));
    }
  }
}
