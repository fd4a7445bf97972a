/**
 * Forms as tools, as browsers with WebMCP make them: `<form toolname="…" tooldescription="…">`. Where
 * the browser does so itself, this sees to it that the page has an App, which lists them.
 *
 * 1. A form is a tool as long as it is in the page and has both attributes. Its schema is made of its
 *    fields at every listing and every call.
 * 2. A call fills in the fields. With `toolautosubmit` it submits the form; without, it waits for
 *    the user to look at it and submit it. What the page passes to `respondWith()` of the event
 *    `submit` is the result.
 * 3. A form that nobody handles is submitted as any other: the page is gone then.
 */
import { hasOwn, type JsonObject } from "./json.js";
import { App, ToolError, type ToolExtra } from "./transom.js";

const { hooks } = App;

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** Elements of a form that a model does not fill in. */
const NO_FIELDS = [
  "",
  "button",
  "fieldset",
  "file",
  "hidden",
  "image",
  "output",
  "reset",
  "submit",
];

/** What the values of a field look like. */
const PATTERNS: Record<string, string> = {
  color: "^#[0-9a-f]{6}$",
  date: "^\\d{4}-\\d\\d-\\d\\d$",
  "datetime-local": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d",
  month: "^\\d{4}-\\d\\d$",
  time: "^\\d\\d:\\d\\d",
  week: "^\\d{4}-W\\d\\d$",
};

/** A member of a form, also where one of its fields has that name. */
function member<Key extends keyof HTMLFormElement>(
  form: HTMLFormElement,
  key: Key,
): HTMLFormElement[Key] {
  const value = Reflect.get(HTMLFormElement.prototype, key, form) as HTMLFormElement[Key];
  return typeof value === "function" ? (value as CallableFunction).bind(form) : value;
}

const elementsOf = (form: HTMLFormElement): (Field | HTMLButtonElement)[] => [
  ...(member(form, "elements") as unknown as Iterable<Field | HTMLButtonElement>),
];

/** The fields of a form by name; check boxes and radio buttons may share one. */
function fieldsOf(form: HTMLFormElement): Map<string, Field[]> {
  const fields = new Map<string, Field[]>();
  for (const field of elementsOf(form) as Field[]) {
    const { name, type } = field;
    if (!name || NO_FIELDS.includes(type) || field.matches(":disabled")) continue;
    if ("options" in field ? field.options.length === 0 : field.readOnly) continue;
    fields.set(name, [...(fields.get(name) ?? []), field]);
  }
  return fields;
}

/** A number that an attribute has, if it has one. */
const numberIn = (field: Field, attribute: string): number | undefined => {
  const text = field.getAttribute(attribute);
  return text && Number.isFinite(Number(text)) ? Number(text) : undefined;
};

function numberSchema(field: Field): JsonObject {
  const [minimum, maximum, step] = ["min", "max", "step"].map((name) => numberIn(field, name));
  // Steps begin at the minimum, multiples at zero.
  const multipleOf = step && step > 0 && (minimum ?? 0) % step === 0 ? step : undefined;
  return { type: "number", minimum, maximum, multipleOf };
}

/** The pattern that a field has; as in HTML, one that is no regular expression is none. */
function patternOf(field: Field): string | undefined {
  const own = field.getAttribute("pattern");
  if (own === null) return undefined;
  const pattern = `^(?:${own})$`;
  try {
    new RegExp(pattern, "u");
    return pattern;
  } catch {
    return undefined;
  }
}

/** A length that a field has; -1 stands for none, and for one that is no number. */
const lengthIn = (length: number): number | undefined => (length < 0 ? undefined : length);

function textSchema(field: HTMLInputElement | HTMLTextAreaElement): JsonObject {
  return {
    type: "string",
    pattern: PATTERNS[field.type] ?? patternOf(field),
    minLength: lengthIn(field.minLength),
    maxLength: lengthIn(field.maxLength),
  };
}

function choiceSchema(field: Field, choices: [value: string, title: string][]): JsonObject {
  const one = {
    type: "string",
    enum: choices.map(([value]) => value),
    anyOf: choices.map(([value, title]) => ({ const: value, title: title || undefined })),
  };
  const isMany = field.type === "checkbox" || field.type === "select-multiple";
  return isMany ? { type: "array", items: one, uniqueItems: true } : one;
}

const labelOf = ({ labels }: Field): string => labels?.[0]?.textContent.trim() ?? "";

function schemaOfFields(fields: Field[]): JsonObject {
  const first = fields[0]!;
  if (first.type === "checkbox" && fields.length === 1) return { type: "boolean" };
  if (first.type === "checkbox" || first.type === "radio") {
    return choiceSchema(
      first,
      fields.map((field) => [field.value, labelOf(field)]),
    );
  }
  if ("options" in first) {
    return choiceSchema(
      first,
      [...first.options].map(({ value, label }) => [value, label]),
    );
  }
  return ["number", "range"].includes(first.type) ? numberSchema(first) : textSchema(first);
}

/** The JSON Schema of what a form takes. */
export function schemaOf(form: HTMLFormElement): JsonObject {
  const properties: JsonObject = {};
  const required: string[] = [];
  for (const [name, fields] of fieldsOf(form)) {
    const first = fields[0]!;
    const label = fields.length === 1 ? labelOf(first) : "";
    const description = first.getAttribute("toolparamdescription") ?? label;
    properties[name] = { ...schemaOfFields(fields), description: description || undefined };
    if (fields.some((field) => field.required)) required.push(name);
  }
  return { type: "object", properties, required };
}

/** Set a member as the browser has it: libraries such as React watch their own. */
const assign = (element: object, member: string, value: unknown): boolean =>
  Reflect.set(Object.getPrototypeOf(element) as object, member, value, element);

function fill(fields: Field[], value: unknown): void {
  const chosen = [value].flat();
  for (const field of fields) {
    if ("checked" in field && ["checkbox", "radio"].includes(field.type)) {
      assign(field, "checked", value === true || chosen.includes(field.value));
    } else if ("options" in field) {
      for (const option of field.options) option.selected = chosen.includes(option.value);
    } else assign(field, "value", String(value));
    for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
  }
}

/** What is wrong with the fields, as the browser would tell the user. */
const faultsIn = (form: HTMLFormElement): string[] =>
  [...fieldsOf(form)].flatMap(([name, [field]]) =>
    member(form, "noValidate") || field!.validity.valid
      ? []
      : `${name}: ${field!.validationMessage}`,
  );

/** A call that waits for a form to be submitted. */
interface Call {
  readonly _answer: (answer: unknown) => void;
  _isSubmitted: boolean;
}

const calls = new Map<HTMLFormElement, Call>();

/** Fill in a form and submit it, or let the user do so; what the page answers. */
function submit(form: HTMLFormElement, given: JsonObject, { signal }: ToolExtra): Promise<unknown> {
  if (calls.has(form)) {
    throw new ToolError("The form waits for the user to submit what was filled in before");
  }
  for (const [name, fields] of fieldsOf(form)) {
    if (hasOwn(given, name)) fill(fields, given[name]);
  }
  const isAutomatic = member(form, "hasAttribute")("toolautosubmit");
  const faults = isAutomatic ? faultsIn(form) : [];
  if (faults.length > 0) throw new ToolError(faults.join("\n"));
  const button = elementsOf(form).find(({ type }) => type === "submit");
  return new Promise((resolve, reject) => {
    const call = { _answer: resolve, _isSubmitted: false };
    calls.set(form, call);
    const end = (): void => reject(new ToolError("The form was reset or the call was cancelled"));
    member(form, "addEventListener")("reset", end, { once: true });
    signal.addEventListener("abort", end);
    if (!isAutomatic) {
      button?.focus();
      return;
    }
    member(form, "requestSubmit")(button);
    if (call._isSubmitted) return;
    // The frame may not submit forms: the page's listeners do their work all the same.
    member(form, "dispatchEvent")(new SubmitEvent("submit", { bubbles: true, cancelable: true }));
  }).finally(() => calls.delete(form));
}

/** Before the page's own listeners: it finds in the event what browsers with WebMCP have there. */
function onSubmit(event: SubmitEvent): void {
  const call = calls.get(event.target as HTMLFormElement);
  let answer: unknown = "Submitted.";
  const respondWith = (given: unknown): void => {
    answer = given;
  };
  Object.defineProperties(event, {
    agentInvoked: { value: Boolean(call) },
    respondWith: { value: respondWith },
  });
  if (!call) return;
  call._isSubmitted = true;
  setTimeout(() => {
    call._answer(answer); // after those listeners
  });
}

/** The forms that are tools now, as what, and how to end that. */
const offered = new Map<HTMLFormElement, [text: string, control: AbortController]>();

/** Offer the forms that are in the page now, and no others. */
function update(): void {
  const found = new Map<HTMLFormElement, [name: string, description: string]>();
  for (const form of document.forms) {
    const [name, description] = ["toolname", "tooldescription"].map(member(form, "getAttribute"));
    if (name && description) found.set(form, [name, description]);
  }
  if (hooks._isNative) {
    if (found.size > 0) hooks._makeApp!();
    return;
  }
  for (const [form, [text, control]] of offered) {
    if (String(found.get(form)) === text) continue;
    offered.delete(form);
    control.abort();
  }
  for (const [form, [name, description]] of found) {
    if (offered.has(form)) continue;
    const control = new AbortController();
    offered.set(form, [String([name, description]), control]);
    const tool = {
      name,
      description,
      inputSchema: () => schemaOf(form),
      execute: (given: JsonObject, extra: ToolExtra) => submit(form, given, extra),
    };
    document.modelContext.registerTool(tool, { signal: control.signal }).catch(console.error);
  }
}

if ("document" in globalThis) {
  if (!hooks._isNative) addEventListener("submit", onSubmit, true);
  new MutationObserver(update).observe(document, {
    attributeFilter: ["toolname", "tooldescription"],
    childList: true,
    subtree: true,
  });
  update();
}
