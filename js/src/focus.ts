/**
 * Where the user types. A frame can take the focus at any time, and would get what is typed from then
 * on: a View that takes it from a field of the page, or from another View, keeps it only if the user
 * has pressed something in it, or came to it with the Tab key. Otherwise it goes back.
 */
import type { View } from "./view.js";

const LOOK_EVERY = 50; // milliseconds: no event says that the focus went from one frame to another
const TAB_LASTS = 300;
const FIELDS = "input, textarea, select, [role=textbox]";

/** The focused element, also inside shadow roots. */
export function focusedElement(): Element | null {
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  return focused;
}

const isField = (element: Element | null): boolean =>
  element instanceof HTMLElement && (element.isContentEditable || element.matches(FIELDS));

export class Focus {
  readonly #views: () => Iterable<View>;
  #owner = focusedElement(); // who has it by the user's will
  #asked: Element | null = null;
  #tabbedAt = -Infinity;
  #entered: EventTarget | undefined; // what the pointer went to since something was pressed
  #looking: ReturnType<typeof setInterval> | undefined;

  constructor(views: () => Iterable<View>) {
    this.#views = views;
    const onUsed = (event: Event): void => {
      if (!event.isTrusted) return;
      this.#tabbedAt =
        event instanceof KeyboardEvent && event.key === "Tab" ? performance.now() : -Infinity;
      this.#entered = undefined;
      for (const view of this.#views()) view.tellElsewhere();
    };
    const onEntered = (event: Event): void => {
      this.#entered = event.composedPath()[0];
    };
    addEventListener("pointerover", onEntered, true);
    addEventListener("keydown", onUsed, true);
    addEventListener("pointerdown", onUsed, true);
    addEventListener("focusin", () => this.#accept(focusedElement()));
    addEventListener("focus", () => clearInterval(this.#looking));
    addEventListener("blur", () => {
      clearInterval(this.#looking);
      this.#looking = setInterval(() => this.#look(), LOOK_EVERY);
      this.#look();
    });
  }

  /** The user pressed Tab in a View, which may be to leave it. */
  onTab(view: View): void {
    if (view.frame === this.#owner) this.#tabbedAt = performance.now();
  }

  #accept(owner: Element | null): void {
    this.#owner = owner;
    this.#asked = null;
    this.#tabbedAt = -Infinity;
  }

  #viewOf(frame: Element | null): View | undefined {
    return frame ? [...this.#views()].find((view) => view.frame === frame) : undefined;
  }

  #look(): void {
    const focused = focusedElement();
    if (!document.hasFocus() || focused === this.#owner || focused === this.#asked) return;
    const view = this.#viewOf(focused);
    const from = this.#viewOf(this.#owner);
    const isFree = !this.#owner?.isConnected || !(from ?? isField(this.#owner));
    if (!view || isFree || performance.now() - this.#tabbedAt < TAB_LASTS) {
      this.#accept(focused);
      return;
    }
    this.#asked = focused;
    // Who presses in a View, elsewhere, and in the View again, has moved the pointer there.
    void view.wasPressed(this.#entered === focused).then((wasPressed) => {
      if (this.#asked !== focused) return;
      this.#asked = null;
      if (focusedElement() !== focused) return;
      if (wasPressed) {
        this.#accept(focused);
        for (const other of this.#views()) if (other !== view) other.tellElsewhere();
      } else if (from) from.focusInside();
      else (this.#owner as HTMLElement).focus();
    });
  }
}
