/**
 * Holds back presses of a real mouse that miss what they were meant for, because the page has moved
 * something else to that place meanwhile.
 */
import {
  eventPath,
  labelsOf,
  listen,
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
  readonly #window: Window;
  readonly #node: Element;
  readonly #names: string[];

  constructor(page: Document, node: Element, isDragged: boolean) {
    this.#window = windowOf(page)!;
    this.#node = node;
    this.#names = isDragged ? DROPS : PRESSES;
    for (const name of this.#names) listen(this.#window, name, this.#check, true);
    // Whoever wanted to press may be gone: the user's own presses are not held back for long.
    setTimeout(() => {
      this.end();
    }, WITHIN);
  }

  end(): void {
    for (const name of this.#names) unlisten(this.#window, name, this.#check, true);
  }

  readonly #check = (event: Event): void => {
    const path = eventPath(event);
    if (
      !event.isTrusted ||
      [this.#node, ...labelsOf(this.#node)].some((one) => path.includes(one))
    ) {
      return;
    }
    this.hasMissed = true;
    prevent(event);
    stopHere(event);
  };
}
