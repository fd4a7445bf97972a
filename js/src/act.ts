/** Does in a page what a person does with a mouse and a keyboard, with events that it makes itself. */
import { fire, focusOn, isWritable, Mouse, pressKey } from "./input.js";
import { isCharacter, readChord } from "./keys.js";
import type { ActionName } from "./messages.js";
import { nameOf } from "./names.js";
import {
  areaValue,
  attribute,
  closeDialog,
  closest,
  formOf,
  has,
  hit,
  inputType,
  inputValue,
  isChecked,
  isHtml,
  isMultiple,
  isSelected,
  isWithin,
  labelsOf,
  localName,
  optionsOf,
  optionText,
  optionValue,
  ownerDocument,
  query,
  queryAll,
  requestSubmit,
  sameTreeById,
  setAreaValue,
  setInputValue,
  setSelected,
  stepUp,
  execute,
  selectAllIn,
  selectInput,
  selectRange,
  caretToEndOf,
} from "./native_dom.js";
import { isDisabled, isInput, isSelect, isTextArea, roleOf, typeOf } from "./roles.js";
import { Sight } from "./sight.js";
import { say, unfit, type Problem, type Target } from "./target.js";
import { shorten } from "./texts.js";

const MAX_KEYS = 80; // characters that are typed one by one
const MAX_STEPS = 200; // keys that move a slider
const DRAG_STEPS = 6;
const TEXT_TYPES = ["text", "search", "email", "tel", "url", "password", "number"];
const VALUE_TYPES = ["range", "number", "date", "time", "datetime-local", "month", "week", "color"];
const CHOICES = [
  "option",
  "tab",
  "menuitem",
  "menuitemcheckbox",
  "menuitemradio",
  "treeitem",
  "radio",
];
const LISTS = ["listbox", "combobox", "radiogroup", "menu", "tablist", "tree", "select"];
const NO_FILES = "A model cannot give a View files: only its user can choose some";
const OPTIONS = CHOICES.map((role) => `[role=${role}]`).join(", ");

/** What is known when something is done. */
export interface Doing {
  target: Target;
  to?: Target;
  value: string;
  page: Document;
  /** Let the page come to rest, in the middle of something. */
  rest: () => Promise<unknown>;
}

/**
 * What came of it: a problem if it was not done; false if the page has noticed it for certain, since it
 * kept the browser from doing something.
 */
export type Done = boolean | Problem;

/** The innermost element that is pressed: something in the target, or the target itself. */
function pressedAt({ node, x, y }: Target, page: Document): Element {
  const there = hit(page, x, y);
  const places = [node, ...labelsOf(node)];
  return there && places.some((place) => isWithin(there, place)) ? there : node;
}

/** Whether no mouse can press it: the browser draws the options of a select element by itself. */
export const isChosenByScript = ({ node }: Target): boolean =>
  localName(node) === "option" && closest(node, "select") !== null;

const click = ({ target, page }: Doing): Done => {
  if (isChosenByScript(target)) return chooseOption(target);
  const mouse = new Mouse(target);
  const node = pressedAt(target, page);
  mouse.over(node);
  return mouse.click(node);
};

// --- text -------------------------------------------------------------------------------------------

const isTextField = (node: Element): boolean =>
  isTextArea(node) || isWritable(node) || (isInput(node) && TEXT_TYPES.includes(inputType(node)));

const valueOf = (node: Element): string =>
  isInput(node) ? inputValue(node) : areaValue(node as HTMLTextAreaElement);

function setValue(node: Element, value: string): void {
  if (isInput(node)) setInputValue(node, value);
  else setAreaValue(node as HTMLTextAreaElement, value);
}

/** Change the value as typing does; whether the page let it happen. */
function write(node: Element, value: string, inputType: string, data: string | null): boolean {
  const about = { inputType, data };
  if (!fire(node, "InputEvent", "beforeinput", about)) return false;
  setValue(node, value);
  fire(node, "InputEvent", "input", { ...about, cancelable: false });
  return true;
}

const commit = (node: Element): void => {
  fire(node, "Event", "change", { cancelable: false, composed: false });
};

function type({ target, value }: Doing): Done {
  const { node } = target;
  focusOn(node as HTMLElement);
  if (!isInput(node) && !isTextArea(node)) {
    caretToEndOf(node);
    return execute(ownerDocument(node)!, "insertText", false, value);
  }
  const text = isInput(node) ? value.replace(/[\r\n]+/g, " ") : value;
  const isWhole = typeOf(node) === "number" || text.length > MAX_KEYS;
  let isAllowed = true;
  for (const part of isWhole ? [text] : text) {
    const limit = Number(attribute(node, "maxlength") ?? Infinity);
    const insert = (): void => {
      const next = `${valueOf(node)}${part}`;
      if (next.length <= limit) isAllowed = write(node, next, "insertText", part) && isAllowed;
    };
    if (isWhole) insert();
    else isAllowed = pressKey(node, { key: part === "\n" ? "Enter" : part }, insert) && isAllowed;
  }
  commit(node);
  return isAllowed;
}

function clear({ target }: Doing): Done {
  const { node } = target;
  focusOn(node as HTMLElement);
  if (isInput(node) || isTextArea(node)) {
    const isAllowed = write(node, "", "deleteContentBackward", null);
    commit(node);
    return isAllowed;
  }
  selectAllIn(node);
  return execute(ownerDocument(node)!, "delete");
}

// --- values -----------------------------------------------------------------------------------------

async function set(doing: Doing): Promise<Done> {
  const { target, value } = doing;
  const { node, role } = target;
  if (isSelect(node)) return select(doing);
  if (isInput(node) && VALUE_TYPES.includes(inputType(node))) {
    const before = inputValue(node);
    setInputValue(node, value);
    const after = inputValue(node);
    setInputValue(node, before);
    const isNoNumber = inputType(node) === "range" && Number.isNaN(Number(value));
    if ((!after && value) || isNoNumber)
      return unfit(`${say(target)} cannot have the value ${shorten(value, 40)}`);
    focusOn(node);
    const isAllowed = write(node, after, "insertReplacementText", after);
    commit(node);
    return isAllowed;
  }
  if (isTextField(node)) {
    clear(doing);
    return type(doing);
  }
  return role === "slider" || role === "spinbutton"
    ? slide(doing)
    : unfit(`${say(target)} has no value that can be set`);
}

/** Move a slider that is none of the browser's own: by keys, as it must react to them. */
async function slide({ target, value, rest }: Doing): Promise<Done> {
  const { node } = target;
  const wanted = Number(value);
  const now = (): number => Number(attribute(node, "aria-valuenow"));
  if (!value.trim() || !Number.isFinite(wanted)) return unfit(`${value} is not a number`);
  if (isHtml(node)) focusOn(node);
  for (let step = 0; step < MAX_STEPS && now() !== wanted; step += 1) {
    const before = now();
    const key = before < wanted ? "ArrowRight" : "ArrowLeft";
    pressKey(node, { key }, () => undefined);
    if (now() === before) await rest();
    const after = now();
    if (after === before) break;
    if (Math.sign(wanted - after) !== Math.sign(wanted - before)) break; // there is none between
  }
  if (now() === wanted) return true;
  const problem = unfit(`${say(target)} is at ${now()}, and does not go to ${value}`);
  return { ...problem, begun: true };
}

// --- choices ----------------------------------------------------------------------------------------

const same = (one: string, other: string): boolean =>
  one.trim().toLowerCase() === other.trim().toLowerCase();

async function select(doing: Doing): Promise<Done> {
  const { target, value } = doing;
  const { node, role } = target;
  if (isChosenByScript(target)) return chooseOption(target);
  if (!value && (isSelect(node) || LISTS.includes(role))) {
    return unfit("select needs an option as its value, or the reference of one");
  }
  if (isSelect(node)) {
    const options = Array.from(optionsOf(node));
    const find = (text: string): HTMLOptionElement | undefined =>
      options.find((each) => same(optionText(each), text)) ??
      options.find((each) => same(optionValue(each), text));
    const names = isMultiple(node) && !find(value) ? value.split(",") : [value];
    const found = names.map(find);
    const missing = names.find((_, index) => !found[index]);
    if (missing !== undefined) return unfit(`${say(target)} has no option ${shorten(missing, 60)}`);
    return choose(node, found as HTMLOptionElement[]);
  }
  if (CHOICES.includes(role) && !value) return click(doing);
  if (LISTS.includes(role)) return chooseIn(doing);
  return CHOICES.includes(role) ? click(doing) : unfit(`${say(target)} has nothing to select`);
}

const chooseOption = ({ node }: Target): Done =>
  choose(closest(node, "select") as HTMLSelectElement, [node as HTMLOptionElement]);

function choose(list: HTMLSelectElement, chosen: HTMLOptionElement[]): Done {
  const disabled = chosen.find(isDisabled);
  if (disabled) return unfit(`${shorten(optionText(disabled), 60)} is disabled`);
  focusOn(list);
  for (const option of optionsOf(list)) {
    const isChosen = chosen.includes(option);
    if (isSelected(option) !== isChosen && (isChosen || isMultiple(list)))
      setSelected(option, isChosen);
  }
  fire(list, "Event", "input", { cancelable: false });
  commit(list);
  return true;
}

/** Press an option of a list that is none of the browser's own, after the list was opened. */
async function chooseIn(doing: Doing): Promise<Done> {
  const { target, value, rest } = doing;
  let option = optionOf(doing);
  if (!option) {
    click(doing);
    await rest();
    option = optionOf(doing);
  }
  if (!option) {
    return { ...unfit(`${say(target)} has no option ${shorten(value, 60)}`), begun: true };
  }
  option.scrollIntoView({ block: "nearest", behavior: "instant" });
  const { left, top, width, height } = option.getBoundingClientRect();
  const place = { ...target, node: option, x: left + width / 2, y: top + height / 2 };
  return click({ ...doing, target: place });
}

function optionOf({ target, value, page }: Doing): Element | undefined {
  const sight = new Sight();
  const controlled = ["aria-controls", "aria-owns"].map((name) => attribute(target.node, name));
  const lists = controlled.map((id) => id && sameTreeById(target.node, id.trim()));
  for (const place of [target.node, ...lists, page.body]) {
    if (!place) continue;
    const found = Array.from(queryAll(place, OPTIONS)).find(
      (each) => sight.isPerceived(each) && same(nameOf(each, roleOf(each), sight), value),
    );
    if (found) return found;
  }
  return undefined;
}

/** Whether something is checked; undefined if it cannot be. */
function checkedOf(node: Element): boolean | undefined {
  const kind = typeOf(node);
  if (kind === "checkbox" || kind === "radio") return isChecked(node as HTMLInputElement);
  const said = attribute(node, "aria-checked") ?? attribute(node, "aria-pressed");
  return said === null ? undefined : said === "true";
}

function check(doing: Doing, wanted: boolean): Done {
  return checkedOf(doing.target.node) === wanted ? false : click(doing);
}

// --- keys -------------------------------------------------------------------------------------------

function press(doing: Doing): Done {
  const { target, value } = doing;
  const { node } = target;
  const chord = readChord(value);
  if (!chord) return unfit(`${shorten(value, 40)} is no key, nor a chord such as Control+A`);
  if (isHtml(node)) focusOn(node);
  return pressKey(node, chord, () => {
    if (!chord.ctrlKey && !chord.metaKey && !chord.altKey) pressed(doing, chord.key);
  });
}

/** What a browser does itself for a key, where pages rely on it. */
function pressed(doing: Doing, key: string): void {
  const { node } = doing.target;
  const kind = typeOf(node);
  const isField = isTextField(node);
  if (key === "Enter" && isInput(node) && isField) submitByEnter(node);
  else if ((key === "Enter" || key === " ") && !isField) {
    if (key === " " || !["checkbox", "radio", "range"].includes(kind)) click(doing);
  } else if (key === "Escape") {
    const dialog = (closest(node, "dialog[open]") ??
      query(doing.page.documentElement, "dialog:modal")) as HTMLDialogElement | null;
    if (dialog && fire(dialog, "Event", "cancel", { bubbles: false })) closeDialog(dialog);
  } else if (key.startsWith("Arrow") && isInput(node) && VALUE_TYPES.slice(0, 2).includes(kind)) {
    const before = inputValue(node);
    stepUp(node, key === "ArrowUp" || key === "ArrowRight" ? 1 : -1);
    const after = inputValue(node);
    setInputValue(node, before);
    write(node, after, "insertReplacementText", after);
    commit(node);
  } else if (isField && (key === "Backspace" || isCharacter(key))) typeKey(node, key);
}

function typeKey(node: Element, key: string): void {
  if (isInput(node) || isTextArea(node)) {
    const now = valueOf(node);
    if (key === "Backspace") write(node, now.slice(0, -1), "deleteContentBackward", null);
    else write(node, now + key, "insertText", key);
  } else if (key === "Backspace") execute(ownerDocument(node)!, "delete");
  else execute(ownerDocument(node)!, "insertText", false, key);
}

/** A form is sent by Enter if it has a button for that, or one field only. */
function submitByEnter(node: HTMLInputElement): void {
  commit(node);
  const form = formOf(node);
  if (!form) return;
  const button = query(form, "button:not([type]), [type=submit], [type=image]");
  if (button && isHtml(button)) new Mouse({ x: 0, y: 0 }).click(button);
  else if (queryAll(form, "input").length === 1) requestSubmit(form);
}

function submit({ target }: Doing): Done {
  const form = formOf(target.node)!;
  const kind = attribute(target.node, "type") ?? "submit";
  const isButton = localName(target.node) === "button" && kind === "submit";
  if (isButton || typeOf(target.node) === "submit") requestSubmit(form, target.node as HTMLElement);
  else requestSubmit(form);
  return true;
}

// --- dragging ---------------------------------------------------------------------------------------

async function drag({ target, to, page, rest }: Doing): Promise<Done> {
  if (!to) return unfit("drag_to needs the reference of the element to drag to");
  const [from, onto] = [pressedAt(target, page), pressedAt(to, page)];
  const start = new Mouse(target);
  const end = new Mouse(to);
  start.over(from);
  start.down(from);
  const dragged = closest(from, "[draggable=true]");
  if (dragged) {
    const data = new DataTransfer();
    if (start.drag(dragged, "dragstart", data)) {
      end.drag(onto, "dragenter", data);
      if (!end.drag(onto, "dragover", data)) end.drag(onto, "drop", data);
      end.drag(dragged, "dragend", data);
    }
    await rest();
    return true;
  }
  for (let step = 1; step <= DRAG_STEPS; step += 1) {
    const part = step / DRAG_STEPS;
    const x = target.x + (to.x - target.x) * part;
    const y = target.y + (to.y - target.y) * part;
    new Mouse({ x, y }).move(hit(page, x, y) ?? from, { buttons: 1 });
    await new Promise((resolve) => setTimeout(resolve));
  }
  end.up(hit(page, to.x, to.y) ?? onto);
  return true;
}

// --- all of them ------------------------------------------------------------------------------------

const ACTIONS: Record<ActionName, (doing: Doing) => Done | Promise<Done>> = {
  click,
  double_click: ({ target, page }) => {
    const mouse = new Mouse(target);
    const node = pressedAt(target, page);
    mouse.over(node);
    return mouse.doubleClick(node);
  },
  type,
  clear,
  set,
  select,
  check: (doing) => check(doing, true),
  uncheck: (doing) => check(doing, false),
  press,
  scroll_into_view: () => false,
  hover: ({ target, page }) => {
    new Mouse(target).over(pressedAt(target, page));
    return false;
  },
  drag_to: drag,
  submit,
  upload: () => unfit(NO_FILES),
};

/** Whether there is such an action. */
export const isAction = (name: string): name is ActionName => Object.hasOwn(ACTIONS, name);

/** Do something that is no misfit. */
export const perform = (action: ActionName, doing: Doing): Done | Promise<Done> =>
  ACTIONS[action](doing);

/** What is wrong with an action for an element, before anything is done. */
export function misfit(action: ActionName, target: Target): Problem | undefined {
  const { node, role } = target;
  switch (action) {
    case "upload":
      return unfit(NO_FILES);
    case "type":
    case "clear":
      return isTextField(node) ? undefined : unfit(`Nothing can be typed into ${say(target)}`);
    case "check":
    case "uncheck":
      if (checkedOf(node) === undefined) return unfit(`${say(target)} cannot be checked`);
      return action === "uncheck" && role === "radio"
        ? unfit("Check another one of its group instead")
        : undefined;
    case "submit":
      return formOf(node) ? undefined : unfit(`${say(target)} is in no form`);
    default:
      return undefined;
  }
}

/** Whether there is nothing to do: it is checked already, or not. */
export const isDone = (action: ActionName, { node }: Target): boolean =>
  (action === "check" || action === "uncheck") && checkedOf(node) === (action === "check");

/** What of an element changes when it is used, to compare it with what it was. */
export const stateOf = (node: Element): string =>
  JSON.stringify([
    checkedOf(node),
    (isTextField(node) && !isWritable(node)) || isInput(node) ? valueOf(node) : "",
    isSelect(node) ? Array.from(optionsOf(node)).map(isSelected) : [],
    localName(node) === "option" && isSelected(node as HTMLOptionElement),
    attribute(node, "aria-expanded"),
    has(node, "open"),
  ]);

/** Prepare an element for a real keyboard: it has the focus, and its text is selected or goes on. */
export function prepare(action: ActionName, { node }: Target): void {
  if (isHtml(node)) focusOn(node);
  if (!isTextField(node)) return;
  if (isInput(node) || isTextArea(node)) {
    const end = valueOf(node).length;
    try {
      selectRange(node, action === "clear" ? 0 : end, end);
    } catch {
      if (action === "clear" && isInput(node)) selectInput(node); // a type without a caret
    }
  } else if (action === "clear") selectAllIn(node);
  else caretToEndOf(node);
}
