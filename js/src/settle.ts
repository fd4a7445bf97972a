/** Waits until a page has come to rest after something was done in it. */
import { animationsIn, documentElement, isConnected } from "./native_dom.js";

const AT_MOST = 2000; // milliseconds
const QUIET_FOR = 60;
const LOOK_EVERY = 15;
const QUIET_LOOKS = 3; // in a row: a browser that stood still has not let the page do anything either

/** The View whose page is waited for. */
export interface ViewFrame {
  /** Its document; undefined if the frame shows something else by now. */
  page: () => Document | undefined;
  /** What it has asked its host and is not answered. */
  requests: () => ReadonlySet<unknown>;
  /** Have the guard lay its page out, which gives the View its size before it is drawn. */
  layOut: () => void;
}

/** Notes what happens in a page from its making on. */
export class Settling {
  readonly #view: ViewFrame;
  readonly #page: Document;
  readonly #touched: Element | undefined;
  readonly #before: ReadonlySet<unknown>;
  readonly #observer: MutationObserver;
  #changedAt = performance.now();
  #changes = 0;

  constructor(view: ViewFrame, page: Document, touched?: Element) {
    this.#view = view;
    this.#page = page;
    this.#touched = touched;
    this.#before = new Set(view.requests());
    this.#observer = new MutationObserver(() => {
      this.#changes += 1;
      this.#changedAt = performance.now();
    });
    this.#observer.observe(page, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true,
    });
    const root = touched?.getRootNode();
    // The changes in a shadow root are seen by its own observers alone.
    if (root && root !== page) this.#observer.observe(root, { subtree: true, childList: true });
  }

  /** Whether something in the page has changed, or it has asked its host something. */
  get hasChanged(): boolean {
    return this.#changes > 0 || this.#isGone || this.#newRequests > 0;
  }

  get #isGone(): boolean {
    return this.#view.page() !== this.#page;
  }

  get #newRequests(): number {
    let count = 0;
    for (const id of this.#view.requests()) if (!this.#before.has(id)) count += 1;
    return count;
  }

  /** Wait until nothing happens any more: whether it was so in time. */
  async settled(): Promise<boolean> {
    const until = performance.now() + AT_MOST;
    let wasAsked = false;
    let looks = 0;
    let changes = this.#changes;
    try {
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
        if (this.#isGone) return false;
        const now = performance.now();
        const isAsking = this.#newRequests > 0;
        if (wasAsked && !isAsking) this.#changedAt = now; // the page has just got its answer
        wasAsked = isAsking;
        looks = changes === this.#changes ? looks + 1 : 0;
        changes = this.#changes;
        const isQuiet = looks >= QUIET_LOOKS && now - this.#changedAt >= QUIET_FOR;
        if (isQuiet && !isAsking && !this.#isMoving()) return true;
        if (now > until) return false;
      }
    } finally {
      this.#changes += this.#observer.takeRecords().length;
      this.#observer.disconnect();
    }
  }

  /** Whether what was touched moves, and will stop. */
  #isMoving(): boolean {
    const touched = this.#touched;
    const place = touched && isConnected(touched) ? touched : documentElement(this.#page);
    return animationsIn(place).some((animation) => {
      const end = Number(animation.effect?.getComputedTiming().endTime);
      return animation.playState === "running" && Number.isFinite(end);
    });
  }
}
