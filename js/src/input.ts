/**
 * Events as a browser makes them for a mouse and a keyboard, for pages that notice them whatever they
 * are made with. They are not trusted by the browser, so that nothing happens that needs a user.
 */
import {
  dispatch,
  eventType,
  focus,
  focused,
  isEditable,
  isHtml,
  listen,
  matches,
  ownerDocument,
  parentOf,
  unlisten,
  windowOf,
} from "./native_dom.js";
import { codeOf, isCharacter, keyCodeOf, type Chord } from "./keys.js";

type Kind =
  | "MouseEvent"
  | "PointerEvent"
  | "KeyboardEvent"
  | "InputEvent"
  | "FocusEvent"
  | "Event"
  | "DragEvent";

const FOCUSABLE =
  "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable], video[controls], audio[controls]";

/** Make an event of the page's own kind, and of ours if the page has broken that. */
function make(node: Element, kind: Kind, type: string, init: object): Event {
  const page = windowOf(ownerDocument(node)!);
  const about = { bubbles: true, cancelable: true, composed: true, view: page, ...init };
  try {
    const made = new page![kind](type, about);
    if (eventType(made) === type) return made;
  } catch {
    // It has replaced the constructor.
  }
  return new window[kind](type, about);
}

/** Whether the page let it happen. */
export const fire = (node: Element, kind: Kind, type: string, init: object = {}): boolean =>
  dispatch(node, make(node, kind, type, init));

// --- the mouse --------------------------------------------------------------------------------------

export class Mouse {
  readonly #x: number;
  readonly #y: number;

  /** At a point of the View's window. */
  constructor({ x, y }: { x: number; y: number }) {
    this.#x = x;
    this.#y = y;
  }

  #at(more: object): MouseEventInit {
    const { screenX, screenY } = window;
    const [x, y] = [this.#x, this.#y];
    return { clientX: x, clientY: y, screenX: screenX + x, screenY: screenY + y, ...more };
  }

  #both(node: Element, name: string, more: object = {}): boolean {
    const pointer = { pointerId: 1, pointerType: "mouse", isPrimary: true };
    const isAllowed = fire(
      node,
      "PointerEvent",
      `pointer${name}`,
      this.#at({ ...more, ...pointer }),
    );
    return fire(node, "MouseEvent", `mouse${name}`, this.#at(more)) && isAllowed;
  }

  /** Move onto an element. */
  over(node: Element): void {
    this.#both(node, "over");
    this.#both(node, "enter", { bubbles: false, composed: false });
    this.#both(node, "move");
  }

  move(node: Element, more: object = {}): void {
    this.#both(node, "move", more);
  }

  /** Press the button; whether the page let it happen. */
  down(node: Element, detail = 1): boolean {
    const isAllowed = this.#both(node, "down", { button: 0, buttons: 1, detail });
    if (isAllowed) focusAround(node);
    return isAllowed;
  }

  up(node: Element, detail = 1): void {
    this.#both(node, "up", { button: 0, buttons: 0, detail });
  }

  /** Press and let go; whether the page let it happen. */
  click(node: Element, detail = 1): boolean {
    const isAllowed = this.down(node, detail);
    this.up(node, detail);
    const isClicked = fire(node, "PointerEvent", "click", this.#at({ button: 0, detail }));
    return isAllowed && isClicked;
  }

  doubleClick(node: Element): boolean {
    const isAllowed = this.click(node) && this.click(node, 2);
    return fire(node, "MouseEvent", "dblclick", this.#at({ detail: 2 })) && isAllowed;
  }

  drag(node: Element, type: string, dataTransfer: DataTransfer): boolean {
    return fire(node, "DragEvent", type, this.#at({ dataTransfer }));
  }
}

// --- the focus --------------------------------------------------------------------------------------

/** Focus what takes the focus for a press on an element. */
export function focusAround(node: Element): void {
  for (let at: Element | null = node; at; at = parentOf(at)) {
    if (matches(at, FOCUSABLE) && isHtml(at)) {
      focusOn(at);
      return;
    }
  }
}

/** Focus an element. In a window without the focus, the browser does not tell the page so. */
export function focusOn(node: HTMLElement): void {
  const wasFocused = focused(ownerDocument(node)!) === node;
  const told: Event[] = [];
  const note = (event: Event): void => {
    told.push(event);
  };
  listen(node, "focus", note);
  focus(node, { preventScroll: true });
  unlisten(node, "focus", note);
  if (told.length > 0 || wasFocused || focused(ownerDocument(node)!) !== node) return;
  fire(node, "FocusEvent", "focus", { bubbles: false, cancelable: false });
  fire(node, "FocusEvent", "focusin", { cancelable: false });
}

export const isWritable = (node: Element): boolean => isHtml(node) && isEditable(node);

// --- the keyboard -----------------------------------------------------------------------------------

/** Press a key and let go; `act` does what a browser would between the two, if the page lets it. */
export function pressKey(node: Element, { key, ...held }: Chord, act: () => void): boolean {
  const keyCode = keyCodeOf(key);
  const init = { key, code: codeOf(key), keyCode, which: keyCode, ...held };
  let isAllowed = fire(node, "KeyboardEvent", "keydown", init);
  if (isAllowed && (isCharacter(key) || key === "Enter") && !held.ctrlKey && !held.metaKey) {
    isAllowed = fire(node, "KeyboardEvent", "keypress", { ...init, charCode: keyCode });
  }
  if (isAllowed) act();
  fire(node, "KeyboardEvent", "keyup", init);
  return isAllowed;
}
