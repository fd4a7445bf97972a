/**
 * The shield over a page. When a View changes its size, its place or its mode, what is under the
 * pointer may not be what the user meant to press: for half a second, nothing there takes presses.
 */
import { element } from "./dom.js";

// Of a popover, which is in front of everything, a browser makes a box with a border.
const COVER =
  "position: fixed; inset: 0; width: auto; height: auto; margin: 0; border: 0; padding: 0; " +
  "background: none; pointer-events: auto";
const STILL_AFTER = 500; // milliseconds
const PRESSES = ["pointerdown", "pointerup", "mousedown", "mouseup", "click", "contextmenu"];
const RUN = 3000; // milliseconds that Views may go on moving what is around them
const PAUSE = 1000; // between two moves after that: the page takes presses for half of it

/** The element around another, also out of shadow roots. */
function parentOf(node: Element): Element | null {
  const root = node.getRootNode();
  return node.assignedSlot ?? node.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}

/** The elements that cut off what is in them: if one keeps its box, nothing outside it has moved. */
function* clippersOf(inside: Element): Generator<Element> {
  for (let at = parentOf(inside); at && at !== document.body; at = parentOf(at)) {
    if (getComputedStyle(at).overflowY !== "visible") yield at;
  }
}

const sameBox = (one: DOMRect, other: DOMRect): boolean =>
  (["x", "y", "width", "height"] as const).every((key) => one[key] === other[key]);

const outline = ({ x, y, width, height }: DOMRect): string =>
  `M${x} ${y}h${width}v${height}h${-width}z`;

export class Shield {
  readonly #cover = element("div", { id: "transom-shield", popover: "manual" });
  readonly #waiting = new Map<HTMLElement, () => void>(); // changes that are still to be made
  #mover: Element | undefined;
  #covered: string | undefined; // what it covers, if not the whole page
  #lifting: ReturnType<typeof setTimeout> | undefined;
  #moving: ReturnType<typeof setTimeout> | undefined;
  #movedAt = -Infinity;
  #movingSince = 0;

  constructor() {
    this.#cover.style.cssText = COVER;
    for (const name of PRESSES) {
      this.#cover.addEventListener(name, (event) => {
        event.preventDefault(); // what has the focus keeps it
        event.stopPropagation();
      });
    }
    addEventListener("scroll", () => this.#clip(), true);
  }

  /**
   * Cover the page, in front of everything. The mover itself takes presses all the same: what it
   * does with them is its own affair.
   */
  raise(mover?: Element, around = new DOMRect(0, 0, innerWidth, innerHeight)): void {
    const isUp = this.#cover.isConnected;
    const covered = mover && outline(around);
    // What was covered stays covered.
    this.#covered = !isUp || (this.#mover === mover && this.#covered === covered) ? covered : "";
    this.#mover = mover;
    this.#clip();
    this.#show();
  }

  /** Cover what is covered for longer; if nothing is, the page. */
  extend(mover?: Element): void {
    if (this.#cover.isConnected) this.#show();
    else this.raise(mover);
  }

  #show(): void {
    this.#cover.remove();
    document.documentElement.append(this.#cover);
    this.#cover.showPopover();
    clearTimeout(this.#lifting);
    this.#lifting = setTimeout(() => this.#cover.remove(), STILL_AFTER);
  }

  #clip(): void {
    const hole = this.#mover && outline(this.#mover.getBoundingClientRect());
    this.#cover.style.clipPath = this.#covered ? `path(evenodd, "${this.#covered}${hole}")` : "";
  }

  /**
   * Make a change of a View's size and cover what may have moved. Views that do not stop growing and
   * shrinking would make the page useless: after a while, all changes are made once in a second, and
   * a View that waits for that has `data-resizing`.
   */
  move(mover: HTMLElement, change: () => void): void {
    this.#waiting.set(mover, change);
    const now = performance.now();
    if (now - this.#movedAt > 2 * PAUSE) this.#movingSince = now;
    const wait = now - this.#movingSince < RUN ? 0 : this.#movedAt + PAUSE - now;
    clearTimeout(this.#moving);
    if (wait > 0) {
      mover.toggleAttribute("data-resizing", true);
      this.#moving = setTimeout(() => this.#moveAll(), wait);
    } else this.#moveAll();
  }

  #moveAll(): void {
    this.#movedAt = performance.now();
    this.moveNow(this.#waiting);
    this.#waiting.clear();
  }

  /** Make changes that are not counted, and cover what may have moved. */
  moveNow(changes: ReadonlyMap<HTMLElement, () => void>): void {
    const [mover] = changes.size === 1 ? changes.keys() : [];
    const clippers = mover ? [...clippersOf(mover)] : [];
    const before = clippers.map((each) => each.getBoundingClientRect());
    for (const [each, change] of changes) {
      change();
      each.removeAttribute("data-resizing");
    }
    const after = clippers.map((each) => each.getBoundingClientRect());
    const around = after.find((box, index) => sameBox(box, before[index]!));
    this.raise(mover, around);
  }
}
