/** What an element is, and in which state, as a model reads it. */
import { hasOwn } from "./json.js";
import {
  areaValue,
  attribute,
  childrenOf,
  closest,
  has,
  inputType,
  inputValue,
  isChecked,
  isEditable,
  isHtml,
  isIndeterminate,
  isOpen,
  isSelected,
  localName,
  matches,
  optionsOf,
  optionText,
  parentOf,
  tabIndex,
} from "./native_dom.js";
import type { Sight } from "./sight.js";

/** The attribute of what no model may read or use. */
export const PRIVATE = "data-transom-private";

/** What is shown of a value that nobody may read. */
export const MASK = "••••";

/** For each of the words, what stands before them. */
const byWord = (groups: Record<string, string>): Map<string, string> =>
  new Map(
    Object.entries(groups).flatMap(([found, words]) =>
      words.split(" ").map((word) => [word, found] as const),
    ),
  );

/** The letter of references, by role; `e` for all others. */
const LETTERS = byWord({
  b: "button",
  l: "link",
  f: "textbox searchbox combobox spinbutton slider date time color file",
  c: "checkbox radio switch",
  o: "option tab menuitem menuitemcheckbox menuitemradio",
  r: "treeitem row",
  t: "table grid treegrid tree list listbox menu",
});

/** Roles of what can be used by itself. */
const WIDGETS = new Set([
  ..."button link textbox searchbox combobox spinbutton slider date time color file".split(" "),
  ..."checkbox radio switch option tab menuitem menuitemcheckbox menuitemradio".split(" "),
  ..."treeitem listbox clickable".split(" "),
]);

/** Roles whose content is their name. */
const NAMED_BY_CONTENT = new Set([
  ..."button link heading option tab checkbox radio switch clickable".split(" "),
  ..."menuitem menuitemcheckbox menuitemradio treeitem row gridcell tooltip".split(" "),
]);

/** Roles of what others are in, which are shown if they have a name, or always. */
const NAMED_GROUPS = new Set([
  ..."group region form navigation main search complementary article figure".split(" "),
  ..."list toolbar radiogroup menubar feed".split(" "),
]);
const GROUPS = new Set([
  ..."table grid treegrid tree dialog alertdialog listbox menu tablist".split(" "),
]);

/** Roles of what tells of itself when it changes, or that stands for something else. */
const REPORTS = new Set([..."alert status log timer progressbar meter".split(" ")]);

/** Roles that say nothing to a reader. */
const SILENT = new Set(["none", "presentation", "generic"]);
const OTHER = new Set([
  ..."heading row cell gridcell columnheader rowheader rowgroup img listitem separator".split(" "),
  ..."paragraph banner contentinfo application document tabpanel tooltip note math".split(" "),
]);
const KNOWN = [WIDGETS, NAMED_GROUPS, GROUPS, REPORTS, SILENT, OTHER];

/** The roles of input elements, by type; all others are text boxes. */
const FIELD_TYPES = byWord({
  button: "button submit reset image",
  checkbox: "checkbox",
  radio: "radio",
  slider: "range",
  spinbutton: "number",
  searchbox: "search",
  date: "date datetime-local month week",
  time: "time",
  color: "color",
  file: "file",
});

/** The roles that elements have by themselves: those of the HTML Accessibility API Mappings. */
const OWN_ROLES = byWord({
  article: "article",
  audio: "audio",
  button: "button summary",
  canvas: "canvas",
  cell: "td",
  columnheader: "th",
  complementary: "aside",
  dialog: "dialog",
  figure: "figure",
  form: "form",
  group: "details fieldset optgroup",
  heading: "h1 h2 h3 h4 h5 h6",
  img: "img svg",
  list: "menu ol ul",
  listitem: "li",
  main: "main",
  meter: "meter",
  navigation: "nav",
  option: "option",
  progressbar: "progress",
  region: "section",
  row: "tr",
  rowgroup: "tbody tfoot thead",
  search: "search",
  separator: "hr",
  status: "output",
  table: "table",
  textbox: "textarea",
  video: "video",
});

export const letterOf = (role: string): string => LETTERS.get(role) ?? "e";
export const isWidget = (role: string): boolean => WIDGETS.has(role);
export const isNamedByContent = (role: string): boolean => NAMED_BY_CONTENT.has(role);
export const isGroup = (role: string): boolean => GROUPS.has(role);
export const isNamedGroup = (role: string): boolean => NAMED_GROUPS.has(role);
export const isReport = (role: string): boolean => REPORTS.has(role);

export const isInput = (node: Element): node is HTMLInputElement => localName(node) === "input";
export const isTextArea = (node: Element): node is HTMLTextAreaElement =>
  localName(node) === "textarea";
export const isSelect = (node: Element): node is HTMLSelectElement => localName(node) === "select";
export const typeOf = (node: Element): string => (isInput(node) ? inputType(node) : "");

/** The role of an element; "" if it has none that says something. */
export function roleOf(node: Element): string {
  const named = attribute(node, "role")?.slice(0, 200).trim().toLowerCase().split(/\s+/) ?? [];
  const given = named.find((role) => KNOWN.some((roles) => roles.has(role)));
  if (given && !SILENT.has(given)) return given;
  const own = ownRole(node);
  if (given && !WIDGETS.has(own)) return "";
  return SILENT.has(own) ? "" : own;
}

function ownRole(node: Element): string {
  const name = localName(node);
  if (isInput(node)) {
    const role = FIELD_TYPES.get(inputType(node)) ?? "textbox";
    return has(node, "list") && ["textbox", "searchbox"].includes(role) ? "combobox" : role;
  }
  if (name === "select") return has(node, "multiple") || isLong(node) ? "listbox" : "combobox";
  if (name === "a" || name === "area") return has(node, "href") ? "link" : "";
  if (name === "img" && attribute(node, "alt") === "" && !has(node, "aria-label")) return "";
  if (name === "th" && attribute(node, "scope")?.startsWith("row")) return "rowheader";
  const isNote = isHtml(node) && isEditable(node) && !isEditableInside(node);
  return isNote && name !== "body" ? "textbox" : (OWN_ROLES.get(name) ?? "");
}

/** A select element that shows several options at once. */
const isLong = (node: Element): boolean => Number(attribute(node, "size") ?? 1) > 1;

/** Whether what makes it editable is around it. */
function isEditableInside(node: Element): boolean {
  const parent = parentOf(node);
  return parent !== null && isHtml(parent) && isEditable(parent);
}

/** Whether it can be used although it has no such role: it takes the focus, or reacts to clicks. */
export function isClickable(node: Element, sight: Sight): boolean {
  if (has(node, "onclick")) return true;
  if (isHtml(node) && has(node, "tabindex") && tabIndex(node) >= 0) return true;
  if (sight.style(node).cursor !== "pointer") return false;
  const parent = parentOf(node);
  return parent === null || sight.style(parent).cursor !== "pointer";
}

// --- values and states ------------------------------------------------------------------------------

const PASSWORDS = /\b(current|new)-password\b/i;
const secrets = new WeakSet<Element>(); // also those that a page has made readable since

/** Whether it is a password field, or something else that shows dots for what is typed. */
export function isSecret(node: Element, sight: Sight): boolean {
  if (secrets.has(node)) return true;
  if (!isInput(node) && !isTextArea(node) && !(isHtml(node) && isEditable(node))) return false;
  const isOne =
    typeOf(node) === "password" ||
    PASSWORDS.test(attribute(node, "autocomplete") ?? "") ||
    sight.showsDots(node);
  if (isOne) secrets.add(node);
  return isOne;
}

/** What an element has as its value; undefined if it has none. */
export function valueOf(node: Element, role: string, sight: Sight): string | undefined {
  if (isSecret(node, sight)) {
    const isEmpty = isInput(node)
      ? inputValue(node) === ""
      : isTextArea(node)
        ? areaValue(node) === ""
        : childrenOf(node).next().done === true;
    return isEmpty ? "" : MASK;
  }
  if (isInput(node)) {
    const type = inputType(node);
    const value = inputValue(node);
    if (role === "checkbox" || role === "radio" || role === "switch" || role === "button") {
      return undefined;
    }
    return type === "file" ? value.replace(/^.*[\\/]/, "") : value;
  }
  if (isTextArea(node)) return areaValue(node);
  if (isSelect(node)) return chosen(node).join(", ");
  const now = attribute(node, "aria-valuetext") ?? attribute(node, "aria-valuenow");
  if (now !== null) return now;
  if (role === "progressbar" || role === "meter") return attribute(node, "value") ?? undefined;
  return undefined;
}

const chosen = (node: HTMLSelectElement): string[] =>
  Array.from(optionsOf(node))
    .filter(isSelected)
    .map((option) => (has(option, PRIVATE) ? MASK : optionText(option)));

/** From which number to which its value goes, such as `0 to 100`. */
function rangeOf(node: Element, role: string): string | undefined {
  if (!["slider", "spinbutton", "progressbar", "meter"].includes(role)) return undefined;
  const isNative = isInput(node);
  const isSlider = isNative && role === "slider";
  const least = attribute(node, isNative ? "min" : "aria-valuemin") ?? (isSlider ? "0" : null);
  const most = attribute(node, isNative ? "max" : "aria-valuemax") ?? (isSlider ? "100" : null);
  return least !== null && most !== null ? `${Number(least)} to ${Number(most)}` : undefined;
}

/** Whether it can be used: neither it nor a fieldset around it is disabled. */
export const isDisabled = (node: Element): boolean =>
  attribute(node, "aria-disabled") === "true" ||
  matches(node, ":disabled") ||
  closest(node, "fieldset[aria-disabled=true]") !== null;

const ARIA_STATES: Record<string, Record<string, string>> = {
  "aria-checked": { true: "checked", mixed: "mixed" },
  "aria-selected": { true: "selected" },
  "aria-pressed": { true: "pressed", mixed: "mixed" },
  "aria-expanded": { true: "expanded", false: "collapsed" },
  "aria-busy": { true: "busy" },
  "aria-invalid": { true: "invalid", grammar: "invalid", spelling: "invalid" },
  "aria-required": { true: "required" },
  "aria-readonly": { true: "readonly" },
  "aria-modal": { true: "modal" },
};

/** The states of an element that a model should know. */
export function statesOf(node: Element, role: string, active: Element | null): string[] {
  const found = new Set<string>();
  for (const [name, words] of Object.entries(ARIA_STATES)) {
    const said = attribute(node, name) ?? "";
    if (hasOwn(words, said)) found.add(words[said]!);
  }
  const current = attribute(node, "aria-current");
  if (current !== null && current !== "false" && current !== "") found.add("current");
  const type = typeOf(node);
  if (type === "checkbox" || type === "radio") {
    if (isIndeterminate(node as HTMLInputElement)) found.add("mixed");
    else if (isChecked(node as HTMLInputElement)) found.add("checked");
  }
  const name = localName(node);
  if (name === "option" && isSelected(node as HTMLOptionElement)) found.add("selected");
  if (name === "summary") {
    const details = parentOf(node);
    if (details && localName(details) === "details") {
      found.add(isOpen(details as HTMLDetailsElement) ? "expanded" : "collapsed");
    }
  }
  if (has(node, "required")) found.add("required");
  if (has(node, "readonly")) found.add("readonly");
  if (matches(node, ":user-invalid")) found.add("invalid");
  if (isDisabled(node)) found.add("disabled");
  if (node === active) found.add("focused");
  const range = rangeOf(node, role);
  return range ? [range, ...found] : [...found];
}

/** The level of a heading. */
export function levelOf(node: Element): number | undefined {
  const given = Number(
    attribute(node, "aria-level") ?? localName(node).replace(/^h(?=[1-6]$)/, ""),
  );
  return given >= 1 && given <= 9 ? Math.floor(given) : undefined;
}
