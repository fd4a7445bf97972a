/** Covers what is private in a page, while a picture of it is taken. */
import { childrenOf, has, isElement, isRendered, queryAll } from "./native_dom.js";
import { draw, move, placeOf } from "./outlines.js";
import { PRIVATE } from "./roles.js";

const MAX_VISITED = 100_000; // elements and texts that are looked at
const MAX_COVERED = 2000; // elements
const COVERED_FOR = 20_000; // milliseconds that a picture may take
const STYLE = "position: fixed; background: #808080; z-index: 2147483647;";

export class Covers {
  #boxes: HTMLElement[] = [];
  #ending: ReturnType<typeof setTimeout> | undefined;
  #following = 0;

  /** Cover it until the end, wherever it moves: how many parts; undefined if there is too much to tell. */
  cover(page: Element): number | undefined {
    const parts = this.#place(page);
    if (parts === undefined) return undefined;
    this.#ending = setTimeout(() => this.end(), COVERED_FOR);
    this.#follow(page);
    return parts;
  }

  /** Cover what is private now before each time that the browser draws the page. */
  #follow(page: Element): void {
    this.#following = requestAnimationFrame(() => {
      this.#follow(page);
      if (this.#place(page) === undefined) {
        this.#putBoxes([new DOMRect(0, 0, innerWidth, innerHeight)]);
      }
    });
  }

  #place(page: Element): number | undefined {
    const parts = privateParts(page);
    const covered = parts?.flatMap((part) => [part, ...queryAll(part, "*")]);
    if (!parts || !covered || covered.length > MAX_COVERED) return undefined;
    // All places first: after each box that is moved, the browser would arrange the page again.
    this.#putBoxes(covered.map(placeOf).filter((place) => place !== undefined));
    return parts.length;
  }

  #putBoxes(places: DOMRect[]): void {
    for (const box of this.#boxes.splice(places.length)) box.remove();
    for (const [index, place] of places.entries()) {
      const box = this.#boxes[index];
      if (box) move(box, place);
      else this.#boxes.push(draw(place, STYLE));
    }
  }

  end(): void {
    clearTimeout(this.#ending);
    cancelAnimationFrame(this.#following);
    this.#putBoxes([]);
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
