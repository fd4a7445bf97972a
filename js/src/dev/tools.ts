/** The server's tools by shape, the form of the chosen one, and its call. */
import { isObject, type JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import { ArgumentForm } from "./form.js";
import type { DevHost } from "./host.js";
import { badge, button, folded, jsonBlock, notes } from "./parts.js";
import { SavedCalls } from "./saved_calls.js";

export interface ServerTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations?: JsonObject;
  _meta?: JsonObject;
  shape: "opens" | "views" | "plain";
}

/** How the call goes that was made last. */
export interface ShownCall {
  tool: string;
  arguments: JsonObject;
  call: string;
  state: "running" | "done" | "failed" | "cancelled";
  progress?: number;
  total?: number | null;
  message?: string | null;
  result?: JsonObject;
  error?: string;
  ms?: number;
  /** How long it is, if it is shown in part. */
  bytes?: number;
  /** What the server wrote to its standard error since, of a call that failed. */
  output?: string;
}

const SHAPES: [ServerTool["shape"], string][] = [
  ["opens", "Opens a View"],
  ["plain", "Backend only"],
  ["views", "For Views only"],
];

const HINTS: Record<string, string> = {
  readOnlyHint: "read-only",
  destructiveHint: "destructive",
  idempotentHint: "idempotent",
  openWorldHint: "open world",
};

/** What a tool says of itself: its annotations, and its description. */
export function aboutTool({
  annotations = {},
  description,
}: Pick<ServerTool, "annotations" | "description">): HTMLElement[] {
  const hints = Object.entries(HINTS).flatMap(([key, word]) => {
    const value = annotations[key];
    return typeof value === "boolean" ? [badge(value ? word : `not ${word}`)] : [];
  });
  const badges = hints.length > 0 ? [element("p", { class: "badges" }, ...hints)] : [];
  return [...badges, ...notes(description)];
}

/** How a call went, in a word. */
export function outcomeOf({ state, result }: ShownCall): { words: string; kind: string } {
  const isError = state === "failed" || result?.isError === true;
  if (isError) return { words: state === "done" ? "error" : state, kind: "bad" };
  return { words: state, kind: state === "done" ? "good" : "" };
}

const MAX_SUMMARY = 80;

/** What it answered, in a line. */
function summaryOf({ state, ms, error, result }: ShownCall): string {
  if (state === "running") return "…";
  const blocks: unknown[] = Array.isArray(result?.content) ? result.content : [];
  const texts = blocks.filter(isObject).map(({ text }) => text);
  const text = error ?? texts.find((each) => typeof each === "string") ?? "";
  const time = ms === undefined ? "" : `${ms} ms`;
  return [text.replace(/\s+/g, " ").slice(0, MAX_SUMMARY), time].filter(Boolean).join(", ");
}

/** How the View gets the arguments: with the call, or before it, piece by piece or at every key. */
type Input = "whole" | "streamed" | "typed";

const INPUTS: [Input, string][] = [
  ["whole", "with the call"],
  ["streamed", "streamed, as a model writes it"],
  ["typed", "as I type"],
];
const TYPED_AFTER = 60; // milliseconds without another key

let calls = 0;

export class Tools {
  readonly #host: DevHost;
  readonly #list: HTMLElement;
  readonly #place: HTMLElement;
  readonly #saved: SavedCalls;
  readonly #onChosen: (tool: string, args: JsonObject) => void;
  readonly #outcome: HTMLElement; // of the last call, beside its button
  #tools: ServerTool[] = [];
  #chosen = "";
  #form: ArgumentForm | undefined;
  #schema = ""; // that the form was made from
  #running = "";
  #cancel: HTMLButtonElement | undefined;
  #input: Input = "whole";
  #typing: ReturnType<typeof setTimeout> | undefined;

  /**
   * `onChosen` is called with the tool that is shown, and its arguments; `showResult` when the author
   * wants to see the result of the last call.
   */
  constructor(
    host: DevHost,
    places: { list: HTMLElement; form: HTMLElement },
    onChosen: (tool: string, args: JsonObject) => void,
    showResult: () => void,
  ) {
    this.#host = host;
    this.#list = places.list;
    this.#place = places.form;
    this.#onChosen = onChosen;
    this.#outcome = button("", showResult, { class: "outcome", title: "Show the result" });
    this.#outcome.hidden = true;
    this.#saved = new SavedCalls((tool, args) => this.choose(tool, args));
    host.onPanel("target", ({ name }: { name: string }) => this.#saved.of(name));
    host.onPanel("tools", (tools: ServerTool[]) => this.#show(tools));
    host.onPanel("call", (call: ShownCall) => {
      this.#running = call.state === "running" ? call.call : "";
      if (this.#cancel) this.#cancel.disabled = !this.#running;
      const { words, kind } = outcomeOf(call);
      this.#outcome.hidden = false;
      this.#outcome.replaceChildren(badge(words, kind), ` ${call.tool}: ${summaryOf(call)}`);
    });
    places.form.addEventListener("input", () => {
      this.#remember();
      this.#type();
    });
    places.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.call();
    });
  }

  #show(tools: ServerTool[]): void {
    this.#tools = tools;
    const first = tools.find(({ shape }) => shape === "opens") ?? tools[0];
    if (!this.#find(this.#chosen) && !this.#chosen) this.#chosen = first?.name ?? "";
    this.#list.replaceChildren(
      ...SHAPES.flatMap(([shape, title]) => {
        const found = tools.filter((tool) => tool.shape === shape);
        if (found.length === 0) return [];
        const rows = found.map((tool) => element("li", {}, this.#choice(tool)));
        return [
          element("h3", { text: `${title} (${found.length})` }),
          element("ul", { class: "tools" }, ...rows),
        ];
      }),
      ...notes(tools.length === 0 ? "It has no tools." : null),
    );
    const chosen = this.#find(this.#chosen);
    if (chosen && JSON.stringify(chosen) !== this.#schema) this.#open(chosen);
    else if (!chosen) this.#place.replaceChildren();
  }

  #find(name: string): ServerTool | undefined {
    return this.#tools.find((tool) => tool.name === name);
  }

  #choice(tool: ServerTool): HTMLElement {
    const made = button(tool.name, () => this.choose(tool.name));
    made.setAttribute("aria-pressed", String(tool.name === this.#chosen));
    if (tool.description) made.title = tool.description;
    return made;
  }

  /** Show a tool and its form; `args` are entered. */
  choose(name: string, args?: JsonObject): void {
    this.#chosen = name;
    for (const each of this.#list.querySelectorAll("button"))
      each.setAttribute("aria-pressed", String(each.textContent === name));
    const tool = this.#find(name);
    if (tool) this.#open(tool, args);
  }

  #open(tool: ServerTool, args?: JsonObject): void {
    this.#schema = JSON.stringify(tool);
    const form = new ArgumentForm(tool.inputSchema, args ?? this.#saved.last(tool.name));
    this.#form = form;
    const raw = element("input", { type: "checkbox", id: "as-json" });
    const input = element("select", { id: "input-mode" });
    for (const [value, text] of INPUTS) input.append(element("option", { value, text }));
    input.value = this.#input;
    input.addEventListener("input", () => {
      this.#input = input.value as Input;
    });
    const inputLabel = element("label", { for: "input-mode" }, "Input ", input);
    const problem = element("p", { class: "problem", role: "alert", id: "form-problem" });
    raw.addEventListener("change", () => {
      problem.textContent = form.setJson(raw.checked) ?? "";
      raw.checked = form.isJson;
    });
    this.#cancel = button(
      "Cancel",
      () => void this.#host.request("cancel", { call: this.#running }),
    );
    this.#cancel.disabled = !this.#running;
    const call = element("button", { type: "submit", class: "primary", text: "Call" });
    call.title = "Ctrl+Enter calls it from anywhere";
    const save = button("Save call", () => {
      const entered = form.read();
      if ("value" in entered) this.#saved.save(tool.name, entered.value);
    });
    this.#place.replaceChildren(
      element("h3", {}, element("bdi", { text: tool.name })),
      ...aboutTool(tool),
      form.element,
      problem,
      element("p", { class: "row" }, call, this.#cancel, save),
      this.#outcome,
      element(
        "p",
        { class: "row choices" },
        raw,
        element("label", { for: "as-json", text: "Edit as JSON" }),
        ...(tool.shape === "opens" ? [inputLabel] : []),
      ),
      this.#saved.element(tool.name),
      folded("Definition", () => [jsonBlock(tool, `Definition of ${tool.name}`)]),
    );
    this.#remember();
  }

  #remember(): void {
    const entered = this.#form?.read();
    if (!entered || !("value" in entered)) return;
    this.#saved.remember(this.#chosen, entered.value);
    this.#onChosen(this.#chosen, entered.value);
  }

  /** Show the View what is entered so far, where the author wants that. */
  #type(): void {
    clearTimeout(this.#typing);
    if (this.#input !== "typed" || this.#find(this.#chosen)?.shape !== "opens") return;
    this.#typing = setTimeout(() => {
      const entered = this.#form?.read();
      if (!entered || !("value" in entered)) return;
      this.#request("type", { tool: this.#chosen, arguments: entered.value });
    }, TYPED_AFTER);
  }

  /** Ask for something, and say beside the form why it is not done. */
  #request(name: string, about: object): void {
    this.#host.request(name, about).catch((error: unknown) => {
      const problem = document.getElementById("form-problem");
      if (problem) problem.textContent = (error as Error).message;
    });
  }

  /** Call the chosen tool with what is entered. */
  call(): void {
    const entered = this.#form?.read();
    const problem = document.getElementById("form-problem");
    if (!entered || !this.#form || !problem) return;
    if ("problem" in entered) {
      problem.textContent = entered.problem;
      return;
    }
    problem.textContent = "";
    clearTimeout(this.#typing);
    calls += 1;
    this.#request("call", {
      tool: this.#chosen,
      arguments: entered.value,
      call: `call-${calls}`,
      streamed: this.#input === "streamed",
    });
  }
}
