/**
 * Hides what is private in a page while a picture of it is taken: by a style sheet in each document and
 * open shadow root of it. However a private part is drawn, and wherever it moves, it is hidden. A box
 * over it would be late, and would miss what is drawn outside of its element's own box.
 */
import {
  adoptedIn,
  adoptIn,
  boxOf,
  documentElement,
  framedDocument,
  isDocument,
  queryAllIn,
  setRules,
  shadowRoot,
  sheetFor,
  type Root,
} from "./native_dom.js";
import { PRIVATE } from "./roles.js";

const MAX_VISITED = 100_000; // elements
const HIDDEN_FOR = 60_000; // milliseconds, longer than a host waits for a picture
// A closed list shows the text of the chosen option by itself, and what is in a slot is elsewhere in the
// tree. The `:not` outweighs the page's rules.
const PARTS = `:is([${PRIVATE}], [${PRIVATE}] *, select:has([${PRIVATE}])):not(#a#a#a#a)`;
const SLOTTED = `:is(slot[${PRIVATE}], [${PRIVATE}] slot)::slotted(*)`;
const STILL = "transition: none !important;"; // it would be seen until its transition is over
const RULES = `${PARTS}, ${SLOTTED} { visibility: hidden !important; opacity: 0 !important; ${STILL} }`;
const SHOWN_RULES = `${PARTS}, ${SLOTTED} { ${STILL} }`;

export class PrivateParts {
  readonly #sheets = new Map<Root, CSSStyleSheet>();
  #view: (() => Document | undefined) | undefined; // while they are hidden
  #wasShown = false;
  #ending: ReturnType<typeof setTimeout> | undefined;
  #following = 0;

  /** Hide them until `show`: whether there are any; undefined if the page is too large to tell. */
  hide(view: () => Document | undefined): boolean | undefined {
    this.#view = view;
    const found = this.#hideAll();
    this.#wasShown = false;
    this.#ending = setTimeout(() => this.show(), HIDDEN_FOR);
    this.#follow();
    return found;
  }

  /** Show them again; whether they were hidden all the time. */
  show(): boolean {
    if (!this.#view) return false;
    this.#look();
    this.#view = undefined;
    clearTimeout(this.#ending);
    cancelAnimationFrame(this.#following);
    for (const sheet of this.#sheets.values()) setRules(sheet, SHOWN_RULES);
    // It is shown from here on: after each sheet, the browser would arrange the page again.
    for (const root of this.#sheets.keys()) if (isDocument(root)) boxOf(documentElement(root));
    for (const [root, sheet] of this.#sheets) {
      const others = [...adoptedIn(root)].filter((each) => each !== sheet);
      adoptIn(root, others);
    }
    this.#sheets.clear();
    return !this.#wasShown;
  }

  /** A page may get another document, or add shadow roots and frames. */
  #follow(): void {
    this.#following = requestAnimationFrame(() => {
      this.#look();
      this.#follow();
    });
  }

  #look(): void {
    if (this.#hideAll() !== false) this.#wasShown = true;
  }

  /** Whether something private was not hidden yet; undefined if the page is too large to tell. */
  #hideAll(): boolean | undefined {
    const page = this.#view?.();
    if (!page) return false;
    let found = false;
    let visited = 0;
    const roots: Root[] = [page];
    for (const root of roots) {
      if (this.#hideIn(root)) found = true;
      for (const node of queryAllIn(root, "*")) {
        if ((visited += 1) > MAX_VISITED) return undefined;
        const inner = shadowRoot(node) ?? framedDocument(node);
        if (inner) roots.push(inner);
      }
    }
    return found;
  }

  #hideIn(root: Root): boolean {
    const known = this.#sheets.get(root);
    const adopted = [...adoptedIn(root)];
    if (known && adopted.includes(known)) return false;
    const sheet = known ?? sheetFor(root);
    if (!known) setRules(sheet, RULES);
    adoptIn(root, [...adopted, sheet]);
    this.#sheets.set(root, sheet);
    return queryAllIn(root, `[${PRIVATE}]`).length > 0;
  }
}
