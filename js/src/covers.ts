/** Covers what is private in a page, while a picture of it is taken. */
import { childrenOf, has, isElement, isRendered, queryAll } from "./native_dom.js";
import { draw, move, placeOf } from "./outlines.js";
import { PRIVATE } from "./roles.js";

const MAX_VISITED = 100_000; // elements and texts that are looked at
const MAX_COVERED = 2000; // elements
const COVERED_FOR = 20_000; // milliseconds that a picture may take
const STYLE = "position: fixed; background: #808080; z-index: 2147483647;";

export class Covers {
  #boxes = new Map<Element, HTMLElement | undefined>(); // undefined: it has no place yet
  #ending: ReturnType<typeof setTimeout> | undefined;
  #following = 0;

  /** Cover it: how many parts; undefined if there is too much to tell. */
  cover(page: Element): number | undefined {
    const parts = privateParts(page);
    const covered = parts?.flatMap((part) => [part, ...queryAll(part, "*")]);
    if (!parts || !covered || covered.length > MAX_COVERED) return undefined;
    this.#boxes = new Map(covered.map((each) => [each, undefined]));
    this.#follow();
    this.#ending = setTimeout(() => this.end(), COVERED_FOR);
    return parts.length;
  }

  /** Put the boxes where the elements are: before each time that the browser draws the page. */
  #follow(): void {
    // All places first: after each box that is moved, the browser would arrange the page again.
    const places = [...this.#boxes].map(([each, box]) => ({ each, box, place: placeOf(each) }));
    for (const { each, box, place } of places) {
      if (!place) continue;
      if (box) move(box, place);
      else this.#boxes.set(each, draw(place, STYLE));
    }
    this.#following = requestAnimationFrame(() => this.#follow());
  }

  end(): void {
    clearTimeout(this.#ending);
    cancelAnimationFrame(this.#following);
    for (const box of this.#boxes.values()) box?.remove();
    this.#boxes.clear();
  }
}

/** The outermost private elements that are shown; undefined if the page is too large to tell. */
function privateParts(page: Element): Element[] | undefined {
  const found: Element[] = [];
  const left: Node[] = [page];
  for (let visited = 0; left.length > 0; visited += 1) {
    if (visited > MAX_VISITED) return undefined;
    const node = left.pop()!;
    if (isElement(node) && has(node, PRIVATE)) {
      if (isRendered(node)) found.push(node);
    } else left.push(...childrenOf(node));
  }
  return found;
}
