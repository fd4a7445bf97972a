/**
 * Outlines around what is read or used, for the user. They are in the page of the sandbox, in front of
 * the View's frame, which fills it. They take no presses, and the View's own page has none of them.
 */
import { boxOf, frameOf, ownerDocument } from "./native_dom.js";

const SHOWN_FOR = 900; // milliseconds
const MARKED_FOR = 600_000; // milliseconds that a question can be open
const FOLLOW_EVERY = 100;
const STYLE =
  "position: fixed; pointer-events: none; margin: -2px; border-radius: 4px; " +
  "border: 2px solid #2152d0; outline: 1px solid #ffffff; z-index: 2147483647;";

/** Where an element is in the window of the sandbox; undefined if it is not shown. */
function placeOf(node: Element): DOMRect | undefined {
  const { left, top, width, height } = boxOf(node);
  if (width === 0 || height === 0) return undefined;
  let [x, y] = [left, top];
  // A View may have frames of its own origin. It fills the page here.
  let frame = frameOf(ownerDocument(node)!);
  for (; frame && ownerDocument(frame) !== document; frame = frameOf(ownerDocument(frame)!)) {
    const around = boxOf(frame);
    x += around.left;
    y += around.top;
  }
  return frame ? new DOMRect(x, y, width, height) : undefined;
}

function draw(place: DOMRect): HTMLElement {
  const box = document.createElement("div");
  box.style.cssText = STYLE;
  move(box, place);
  document.body.append(box);
  return box;
}

function move(box: HTMLElement, { x, y, width, height }: DOMRect): void {
  Object.assign(box.style, {
    left: `${x}px`,
    top: `${y}px`,
    width: `${width}px`,
    height: `${height}px`,
  });
}

export class Outlines {
  #flashed: HTMLElement[] = [];
  #clearing: ReturnType<typeof setTimeout> | undefined;
  #marked: HTMLElement | undefined;
  #following: ReturnType<typeof setInterval> | undefined;

  /** Outline elements for a moment. */
  flash(nodes: Element[]): void {
    this.end();
    // All places first: after each box that is added, the browser would arrange the page again.
    const places = nodes.map(placeOf).filter((place) => place !== undefined);
    this.#flashed = places.map((place) => draw(place));
    this.#clearing = setTimeout(() => this.#clear(), SHOWN_FOR);
  }

  /** Remove those that are there for a moment. */
  end(): void {
    clearTimeout(this.#clearing);
    this.#clear();
  }

  #clear(): void {
    for (const box of this.#flashed) box.remove();
    this.#flashed = [];
  }

  /** Outline one element until the next is marked, wherever it moves; null: none. */
  mark(node: Element | null): void {
    clearInterval(this.#following);
    this.#marked?.remove();
    const at = node ? placeOf(node) : undefined;
    this.#marked = at && draw(at);
    if (!node) return;
    const until = performance.now() + MARKED_FOR;
    this.#following = setInterval(() => {
      const place = placeOf(node);
      if (!place || performance.now() > until) this.mark(null);
      else if (this.#marked) move(this.#marked, place);
    }, FOLLOW_EVERY);
  }
}
