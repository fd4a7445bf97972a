/**
 * A form for the arguments of a tool, made from its JSON Schema. Names and texts are a server's or a
 * View's words: they are shown as text.
 */
import type { JsonObject } from "../json.js";
import { element } from "../views_bundle.js";
import { button, notes } from "./parts.js";
import { fieldOf, fits, isSame, type Field } from "./schema_fields.js";

/** A control of the form; `read` is undefined where nothing was entered. */
interface Control {
  readonly element: HTMLElement;
  readonly read: () => unknown;
}

/** What is entered, or why it cannot be used. */
export type Entered = { value: JsonObject } | { problem: string };

let made = 0;
const newId = (): string => `field-${(made += 1)}`;

const pretty = (value: unknown): string => JSON.stringify(value, undefined, 2);

class Unreadable extends Error {}

function labelled(field: Field, control: HTMLElement): HTMLElement {
  control.id ||= newId();
  if (field.required) control.setAttribute("aria-required", "true");
  const label = element("label", { for: control.id }, ...words(field));
  const parts: Node[] = [label];
  if (field.description) {
    const note = element("p", { class: "note", id: newId(), text: field.description });
    control.setAttribute("aria-describedby", note.id);
    parts.push(note);
  }
  return element("div", { class: "field" }, ...parts, control);
}

function words({ title, required }: Field): Node[] {
  const mark = { class: "required", text: " *", title: "required", "aria-hidden": "true" };
  return [element("bdi", { text: title }), ...(required ? [element("span", mark)] : [])];
}

const TYPES: Record<string, string> = { email: "email", uri: "url", date: "date", time: "time" };

function stringControl(field: Field & { kind: "string" }, value: unknown): Control {
  const { format = "", minLength, maxLength, pattern, required } = field;
  const long = format === "" && !pattern && (maxLength ?? 0) > 200;
  const input = long
    ? element("textarea", { rows: "3" })
    : element("input", { type: TYPES[format] ?? "text" });
  if (minLength !== undefined) input.setAttribute("minlength", String(minLength));
  if (maxLength !== undefined) input.setAttribute("maxlength", String(maxLength));
  input.setAttribute("autocomplete", "off");
  input.setAttribute("spellcheck", "false");
  if (format) input.setAttribute("placeholder", format);
  input.value = typeof value === "string" ? value : "";
  const read = (): unknown => (input.value === "" && !required ? undefined : input.value);
  return { element: labelled(field, input), read };
}

function numberControl(field: Field & { kind: "number" | "integer" }, value: unknown): Control {
  const input = element("input", {
    type: "number",
    step: field.kind === "integer" ? "1" : "any",
    autocomplete: "off",
  });
  if (field.minimum !== undefined) input.min = String(field.minimum);
  if (field.maximum !== undefined) input.max = String(field.maximum);
  input.value = typeof value === "number" ? String(value) : "";
  const read = (): unknown => {
    if (input.value === "" && !input.validity.badInput) return undefined;
    if (Number.isNaN(input.valueAsNumber)) throw new Unreadable(`${field.title} is not a number`);
    return input.valueAsNumber;
  };
  return { element: labelled(field, input), read };
}

/** A selection; a field that need not be there can be left out. */
function choiceControl(field: Field, options: unknown[], value: unknown): Control {
  const select = element("select");
  if (!field.required) select.append(element("option", { value: "", text: "(not given)" }));
  options.forEach((option, index) => {
    const text = typeof option === "string" ? option : JSON.stringify(option);
    select.append(element("option", { value: String(index), text }));
  });
  const chosen = options.findIndex((option) => isSame(option, value));
  if (chosen >= 0) select.value = String(chosen);
  const read = (): unknown => (select.value === "" ? undefined : options[Number(select.value)]);
  return { element: labelled(field, select), read };
}

function booleanControl(field: Field, value: unknown): Control {
  if (!field.required && field.default === undefined)
    return choiceControl(field, [true, false], value);
  const box = element("input", { type: "checkbox", id: newId() });
  box.checked = value === true;
  const label = element("label", { for: box.id }, ...words({ ...field, required: false }));
  const parts = element("div", { class: "field tick" }, box, label, ...notes(field.description));
  return { element: parts, read: () => box.checked };
}

function listControl(field: Field & { kind: "list" }, value: unknown): Control {
  const items: { control: Control; row: HTMLElement }[] = [];
  const rows = element("div", { class: "items" });
  const add = (each: unknown): HTMLElement => {
    const title = `Item ${items.length + 1}`;
    const control = controlOf({ ...field.item, title }, each);
    const row = element("div", { class: "item" }, control.element);
    const entry = { control, row };
    row.append(
      button(
        "✕",
        () => {
          items.splice(items.indexOf(entry), 1);
          row.remove();
          rows.dispatchEvent(new Event("input", { bubbles: true }));
          more.focus();
        },
        { "aria-label": `Remove ${title} of ${field.title}`, class: "remove" },
      ),
    );
    items.push(entry);
    rows.append(row);
    return row;
  };
  const more = button("Add item", () => {
    add(startOf(field.item)).querySelector<HTMLElement>("input, select, textarea")?.focus();
    rows.dispatchEvent(new Event("input", { bubbles: true }));
  });
  for (const each of Array.isArray(value) ? value : []) add(each);
  const read = (): unknown =>
    items.length === 0 && !field.required
      ? undefined
      : items.map(({ control }) => control.read() ?? null);
  return { element: fieldset(field, rows, more), read };
}

function fieldset(field: Field, ...children: Node[]): HTMLElement {
  const legend = element("legend", {}, ...words(field));
  return element("fieldset", {}, legend, ...notes(field.description), ...children);
}

function groupControl(field: Field & { kind: "group" }, value: unknown, isWhole: boolean): Control {
  const before = Object(value) as JsonObject;
  const controls = Object.entries(field.fields).map(([name, each]): [string, Control] => [
    name,
    controlOf(each, Object.hasOwn(before, name) ? before[name] : startOf(each)),
  ]);
  const elements = controls.map(([, control]) => control.element);
  const read = (): unknown => {
    const entries = controls
      .map(([name, control]): [string, unknown] => [name, control.read()])
      .filter(([, each]) => each !== undefined);
    return entries.length === 0 && !field.required ? undefined : Object.fromEntries(entries);
  };
  const whole = element("div", { class: "group" }, ...elements);
  return { element: isWhole ? whole : fieldset(field, ...elements), read };
}

function variantsControl(field: Field & { kind: "variants" }, value: unknown): Control {
  const { variants } = field;
  const fitting = value === undefined ? 0 : variants.findIndex((each) => fits(each, value));
  const select = element("select", { "aria-label": `Variant of ${field.title}` });
  if (!field.required) select.append(element("option", { value: "", text: "(not given)" }));
  variants.forEach(({ title }, index) =>
    select.append(element("option", { value: String(index), text: title })),
  );
  const place = element("div");
  let control: Control | undefined;
  const show = (start: unknown): void => {
    control = undefined;
    if (select.value !== "") {
      const variant = variants[Number(select.value)]!;
      control = controlOf(variant, start ?? startOf(variant));
    }
    place.replaceChildren(...(control ? [control.element] : []));
  };
  select.value = value === undefined && !field.required ? "" : String(Math.max(fitting, 0));
  select.addEventListener("change", () => show(undefined));
  show(value);
  return { element: fieldset(field, select, place), read: () => control?.read() };
}

function jsonControl(field: Field, value: unknown): Control {
  const input = element("textarea", { rows: "3", class: "json", spellcheck: "false" });
  input.value = value === undefined ? "" : pretty(value);
  const read = (): unknown => (input.value.trim() === "" ? undefined : parse(input.value, field));
  const shown = {
    ...field,
    description: [field.description, "As JSON"].filter(Boolean).join(". "),
  };
  return { element: labelled(shown, input), read };
}

function parse(text: string, { title }: Field): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new Unreadable(`${title || "This"} is not JSON: ${(error as Error).message}`);
  }
}

/** What a field has at first. */
const startOf = (field: Field): unknown => (field.default === null ? undefined : field.default);

function controlOf(field: Field, value: unknown, isWhole = false): Control {
  const shown = value === null ? undefined : value;
  if (!fits(field, shown)) return jsonControl(field, shown);
  switch (field.kind) {
    case "string":
      return stringControl(field, shown);
    case "number":
    case "integer":
      return numberControl(field, shown);
    case "boolean":
      return booleanControl(field, shown);
    case "choice":
      return choiceControl(field, field.options, shown);
    case "list":
      return listControl(field, shown);
    case "group":
      return groupControl(field, shown, isWhole);
    case "variants":
      return variantsControl(field, shown);
    case "json":
      return jsonControl(field, shown);
  }
}

/** A form for the arguments of a tool, as fields or as JSON. */
export class ArgumentForm {
  readonly element = element("div", { class: "arguments" });
  readonly #field: Field;
  #control!: Control;
  #isJson = false;

  /** `value`: what is entered at first. */
  constructor(schema: JsonObject, value?: JsonObject) {
    this.#field = fieldOf(schema, { name: "Arguments" });
    this.set(value);
  }

  get isJson(): boolean {
    return this.#isJson;
  }

  /** Enter these arguments. */
  set(value: JsonObject | undefined): void {
    const shown = value ?? (startOf(this.#field) as JsonObject | undefined);
    const field: Field = { ...this.#field, title: "Arguments", required: true };
    delete field.description;
    this.#control = this.#isJson ? jsonControl(field, shown ?? {}) : controlOf(field, shown, true);
    this.element.replaceChildren(this.#control.element);
  }

  /** Edit the arguments as JSON, or as fields. What cannot be read as JSON stays there. */
  setJson(isJson: boolean): string | undefined {
    try {
      const now = this.#control.read() as JsonObject | undefined;
      this.#isJson = isJson;
      this.set(now);
      return undefined;
    } catch (error) {
      if (error instanceof Unreadable) return error.message;
      throw error;
    }
  }

  /** What is entered, or why it cannot be read. Whether it fits the schema is the server's to say. */
  read(): Entered {
    try {
      const value = this.#control.read() ?? {};
      if (typeof value !== "object" || Array.isArray(value))
        return { problem: "The arguments are a JSON object." };
      return { value: value as JsonObject };
    } catch (error) {
      if (error instanceof Unreadable) return { problem: error.message };
      throw error;
    }
  }
}
