/** A long list of which only what can be seen is on the page: chosen with the arrows, or a press. */
import { element } from "../views_bundle.js";

const ROW = 24; // pixels, as in dev.css
const BEYOND = 10; // rows above and below what can be seen

interface Drawn<Item> {
  item: Item;
  row: HTMLElement;
}

export class VirtualList<Item> {
  readonly element: HTMLElement;
  readonly #rows = element("div", { class: "rows", role: "presentation" });
  readonly #fill: (row: HTMLElement, item: Item) => void;
  readonly #onChosen: (item: Item) => void;
  #items: readonly Item[] = [];
  #drawn = new Map<number, Drawn<Item>>(); // by index
  #chosen: Item | undefined;
  #isDue = false;

  constructor(
    label: string,
    fill: (row: HTMLElement, item: Item) => void,
    onChosen: (item: Item) => void,
  ) {
    this.#fill = fill;
    this.#onChosen = onChosen;
    const about = { class: "list", role: "listbox", tabindex: "0", "aria-label": label };
    this.element = element("div", about, this.#rows);
    this.element.addEventListener("scroll", () => this.#draw());
    this.element.addEventListener("keydown", (event) => this.#onKey(event));
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  /** Show these, as they are now; the end stays in sight if it was. */
  show(items: readonly Item[]): void {
    this.#drawn.clear();
    const { scrollTop, clientHeight } = this.element;
    const isAtEnd = scrollTop + clientHeight >= this.#items.length * ROW - ROW;
    this.#items = items;
    this.#rows.style.height = `${items.length * ROW}px`;
    if (isAtEnd) this.element.scrollTop = items.length * ROW;
    this.#draw();
  }

  choose(item: Item): void {
    this.#chosen = item;
    const top = this.#items.indexOf(item) * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW > scrollTop + clientHeight)
      this.element.scrollTop = top + ROW - clientHeight;
    this.#onChosen(item);
    this.#draw();
  }

  #onKey(event: KeyboardEvent): void {
    const last = this.#items.length - 1;
    const at = this.#chosen === undefined ? -1 : this.#items.indexOf(this.#chosen);
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const to = {
      ArrowDown: at + 1,
      ArrowUp: at < 0 ? last : at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(this.#items[Math.min(Math.max(to, 0), last)]!);
  }

  #draw(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#drawNow();
    });
  }

  /** A row that stays in sight while the list is scrolled stays as it is: to make it takes time. */
  #drawNow(): void {
    const { scrollTop, clientHeight } = this.element;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
    const to = Math.min(this.#items.length, Math.ceil((scrollTop + clientHeight) / ROW) + BEYOND);
    const drawn = new Map<number, Drawn<Item>>();
    const kept = new Set<Element>();
    this.element.removeAttribute("aria-activedescendant");
    for (let index = from; index < to; index += 1) {
      const item = this.#items[index]!;
      const before = this.#drawn.get(index);
      const row = before?.item === item ? before.row : this.#row(index, item);
      row.setAttribute("aria-setsize", String(this.#items.length));
      row.setAttribute("aria-selected", String(item === this.#chosen));
      if (item === this.#chosen) this.element.setAttribute("aria-activedescendant", row.id);
      drawn.set(index, { item, row });
      kept.add(row);
    }
    for (const row of [...this.#rows.children]) if (!kept.has(row)) row.remove();
    this.#drawn = drawn;
    let next = this.#rows.firstElementChild;
    for (const { row } of drawn.values()) {
      if (row === next) next = next.nextElementSibling;
      else this.#rows.insertBefore(row, next);
    }
  }

  #row(index: number, item: Item): HTMLElement {
    const row = element("div", { role: "option", id: `row-${index}`, class: "line" });
    row.setAttribute("aria-posinset", String(index + 1));
    row.style.top = `${index * ROW}px`;
    row.addEventListener("click", () => this.choose(item));
    this.#fill(row, item);
    return row;
  }
}
