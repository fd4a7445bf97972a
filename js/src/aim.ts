/**
 * Holds back presses of a real mouse that miss what they were meant for, because the page has moved
 * something else to that place meanwhile.
 */
import {
  eventPath,
  labelsOf,
  listen,
  ownerDocument,
  prevent,
  stopHere,
  unlisten,
  windowOf,
} from "./native_dom.js";

const WITHIN = 10_000; // milliseconds that a press has to come
const PRESSES = ["pointerdown", "mousedown", "click", "dblclick"];
const DROPS = ["pointerdown", "mousedown"]; // the rest of dragging is elsewhere

export class Aim {
  /** Whether a press has missed it. */
  hasMissed = false;
  /** Whether one has met it. */
  hasMet = false;
  readonly #windows: Set<Window>;
  readonly #node: Element;
  readonly #names: string[];

  constructor(page: Document, node: Element, isDragged: boolean) {
    // A press on what is in a frame of the page is told in that frame alone.
    this.#windows = new Set([windowOf(page)!, windowOf(ownerDocument(node)!)!]);
    this.#node = node;
    this.#names = isDragged ? DROPS : PRESSES;
    this.#each((at, name) => listen(at, name, this.#check, true));
    // Whoever wanted to press may be gone: the user's own presses are not held back for long.
    setTimeout(() => this.end(), WITHIN);
  }

  end(): void {
    this.#each((at, name) => unlisten(at, name, this.#check, true));
  }

  #each(act: (at: Window, name: string) => void): void {
    for (const at of this.#windows) for (const name of this.#names) act(at, name);
  }

  readonly #check = (event: Event): void => {
    if (!event.isTrusted) return;
    const path = eventPath(event);
    if ([this.#node, ...labelsOf(this.#node)].some((one) => path.includes(one))) {
      this.hasMet = true;
      return;
    }
    this.hasMissed = true;
    prevent(event);
    stopHere(event);
  };
}
