/**
 * The form in which a user answers a server. Labels and values are a server's words: they are shown as
 * text, and what the user enters is checked by the browser, for their convenience alone. The host
 * checks it again.
 */
import { element, type Nodes } from "./dom.js";
import type { FieldOption, FormField, FormFields } from "./messages.js";

type Value = FormFields[string];

/** A field on the page; `read` is null where nothing was entered. */
interface Shown {
  readonly element: HTMLElement;
  readonly read: () => Value;
}

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };
const CHOOSE = "Choose…";

/** A point in time as the input of a browser has it, in the user's time zone. */
function localTime(text: string): string {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return "";
  const offset = time.getTimezoneOffset() * 60_000;
  return new Date(time.getTime() - offset).toISOString().slice(0, 16);
}

/** The attributes that are given. */
const given = (all: Record<string, string | number | null | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value == null ? [] : [[name, String(value)]])),
  );

function textInput(field: FormField): [HTMLInputElement, () => Value] {
  const { format, default: before = "", minimum, maximum } = field;
  const isTime = format === "date-time";
  const limits = { minlength: minimum, maxlength: maximum };
  const input = element("input", given({ type: format ? TYPES[format] : "text", ...limits }));
  input.value = isTime ? localTime(String(before)) : String(before);
  const read = (): Value =>
    input.value && isTime ? new Date(input.value).toISOString() : input.value || null;
  return [input, read];
}

function numberInput({
  kind,
  default: before = "",
  minimum,
  maximum,
}: FormField): [HTMLInputElement, () => Value] {
  const step = kind === "integer" ? "1" : "any";
  const input = element("input", given({ type: "number", step, min: minimum, max: maximum }));
  input.value = String(before);
  return [input, (): Value => (input.value === "" ? null : input.valueAsNumber)];
}

function choiceInput({
  options = [],
  default: before,
}: FormField): [HTMLSelectElement, () => Value] {
  const input = element(
    "select",
    {},
    element("option", { value: "", text: CHOOSE }),
    ...options.map(({ title }, index) => element("option", { value: String(index), text: title })),
  );
  const chosen = options.findIndex(({ value }) => value === before);
  input.value = chosen < 0 ? "" : String(chosen);
  return [input, (): Value => (input.value === "" ? null : options[Number(input.value)]!.value)];
}

/** A box to tick, with what it is for beside it. */
function tick(title: string, isOn: boolean): { box: HTMLInputElement; label: HTMLElement } {
  const box = element("input", { type: "checkbox" });
  box.checked = isOn;
  return { box, label: element("label", { class: "tick" }, box, element("span", { text: title })) };
}

function choicesField(field: FormField): Shown {
  const { options = [], default: before, minimum, maximum, required } = field;
  const isOn = ({ value }: FieldOption): boolean => Array.isArray(before) && before.includes(value);
  const ticks = options.map((option) => ({ option, ...tick(option.title, isOn(option)) }));
  const chosen = (): string[] =>
    ticks.filter(({ box }) => box.checked).map(({ option }) => option.value);
  const check = (): void => {
    const count = chosen().length;
    const isLeftOut = count === 0 && !required;
    const few = !isLeftOut && count < (minimum ?? 0) ? `Choose at least ${minimum}.` : "";
    const many = count > (maximum ?? Infinity) ? `Choose at most ${maximum}.` : "";
    ticks[0]?.box.setCustomValidity(few || many);
  };
  check();
  const group = element(
    "fieldset",
    { class: "field" },
    element("legend", {}, ...heading(field)),
    ...note(field),
    ...ticks.map(({ label }) => label),
  );
  group.addEventListener("change", check);
  return { element: group, read: () => (chosen().length || required ? chosen() : null) };
}

const heading = ({ title, required }: FormField): Nodes => [
  element("bdi", { text: title }),
  ...(required ? [] : [element("span", { class: "optional", text: " (optional)" })]),
];

const note = ({ description }: FormField): Nodes =>
  description ? [element("p", { text: description })] : [];

function shown(field: FormField): Shown {
  const { kind, title, required } = field;
  if (kind === "choices") return choicesField(field);
  if (kind === "boolean") {
    const { box, label } = tick(title, field.default === true);
    const read = (): Value => box.checked;
    return { element: element("div", { class: "field" }, label, ...note(field)), read };
  }
  const make = { text: textInput, number: numberInput, integer: numberInput, choice: choiceInput };
  const [input, read] = make[kind](field);
  input.required = Boolean(required);
  input.setAttribute("autocomplete", "off");
  const label = element("label", {}, element("span", {}, ...heading(field)), input);
  return { element: element("div", { class: "field" }, label, ...note(field)), read };
}

/**
 * A form with these fields, and what the user has entered: undefined, and the browser shows what is
 * missing, until it is complete. `submit` is called when the user presses Enter in it.
 */
export function questionForm(
  fields: readonly FormField[],
  submit: () => void,
): { form: HTMLFormElement; read: () => FormFields | undefined } {
  const all = fields.map((field) => ({ name: field.name, ...shown(field) }));
  const end = element("span", { class: "end" });
  const enter = element("button", { hidden: "" }); // without one, Enter does nothing
  const form = element("form", { class: "fields" }, ...all.map((each) => each.element), end, enter);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  const read = (): FormFields | undefined =>
    form.reportValidity()
      ? Object.fromEntries(all.map((field) => [field.name, field.read()]))
      : undefined;
  return { form, read };
}
