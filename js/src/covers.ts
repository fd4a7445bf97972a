/** Covers what is private in a page, while a picture of it is taken. */
import { childrenOf, has, isElement, isRendered, queryAll } from "./native_dom.js";
import { draw, placeOf } from "./outlines.js";
import { PRIVATE } from "./roles.js";

const MAX_VISITED = 100_000; // elements and texts that are looked at
const MAX_COVERED = 2000; // elements
const COVERED_FOR = 20_000; // milliseconds that a picture may take
const STYLE = "position: fixed; background: #808080; z-index: 2147483647;";

export class Covers {
  #boxes: HTMLElement[] = [];
  #ending: ReturnType<typeof setTimeout> | undefined;

  /** Cover it: how many parts; undefined if there is too much to tell. */
  cover(page: Element): number | undefined {
    const parts = privateParts(page);
    const covered = parts?.flatMap((part) => [part, ...queryAll(part, "*")]);
    if (!parts || !covered || covered.length > MAX_COVERED) return undefined;
    const places = covered.map(placeOf).filter((place) => place !== undefined);
    this.#boxes = places.map((place) => draw(place, STYLE));
    this.#ending = setTimeout(() => this.end(), COVERED_FOR);
    return parts.length;
  }

  end(): void {
    clearTimeout(this.#ending);
    for (const box of this.#boxes) box.remove();
    this.#boxes = [];
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
