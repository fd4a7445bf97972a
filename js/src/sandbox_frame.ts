/** The frames around a View on a page: its guard, and in that its sandbox. */
import { element, rootOf } from "./dom.js";
import {
  ELSEWHERE,
  FLAGS,
  PRESSED,
  type Pressed,
  type SandboxAddress,
  type SandboxPlace,
} from "./messages.js";

export const SANDBOX_PATH = "/transom-view"; // `transom.web.asgi` knows it
export const NOT_PRESSED: Pressed = { isRecent: false, isLast: false };

const AGAIN = 1000; // milliseconds until something else than the sandbox is loaded again
const AGAIN_FOR = 10_000; // milliseconds; less than a host waits for a View
const ANYTHING_WITHIN = 60_000; // milliseconds that a busy browser has to load anything at all
const GUARD_WITHIN = 300; // milliseconds that a guard has to answer
const SPARE_WITHIN = 5000; // milliseconds that a guard which was there before has to load a sandbox

type OnAnswer = (answer: Pressed) => void;

/** Tell a guard something; an error page in its place is not told. */
function tell(
  frame: HTMLIFrameElement,
  guard: string,
  message: unknown,
  onAnswer?: OnAnswer,
): void {
  const { port1, port2 } = new MessageChannel();
  if (onAnswer) {
    port1.addEventListener("message", ({ data }: MessageEvent<Pressed>) => onAnswer(data));
    port1.start();
  }
  frame.contentWindow?.postMessage(message, guard, onAnswer ? [port2] : []);
}

/** A guard on the page that has no sandbox yet: the next View need not wait for one. */
export class SpareGuard {
  readonly element = element("iframe", { sandbox: FLAGS, part: "frame" });
  readonly #guard: string;
  readonly #place: HTMLElement;

  /** Whether this browser can move it to a View. */
  static readonly isPossible = "moveBefore" in Element.prototype;

  constructor(guard: string) {
    this.#guard = guard;
    const { element: frame } = this;
    const onAnswer = (): void => void (frame.dataset.spare = "ready");
    frame.addEventListener("load", () => tell(frame, guard, PRESSED, onAnswer), { once: true });
    frame.dataset.spare = "loading";
    frame.src = `${guard}${SANDBOX_PATH}`;
    const place = element("div");
    place.style.display = "none"; // `hidden` would lose to a style of the page
    rootOf(place).append(frame); // where a View does not find it among the frames of the page
    document.body.append(place);
    this.#place = place;
  }

  /** Move it there, where it is shown. `append` would have it loaded again. */
  moveTo(root: ShadowRoot): void {
    root.moveBefore(this.element, null);
    delete this.element.dataset.spare;
    this.remove();
  }

  remove(): void {
    this.#place.remove();
  }

  /** Whether a sandbox at such an address can be loaded in it now. */
  suits({ guard }: SandboxAddress): boolean {
    const { isConnected, dataset } = this.element;
    return guard === this.#guard && isConnected && dataset.spare === "ready";
  }
}

export class SandboxFrame {
  readonly element: HTMLIFrameElement;
  /** How often the sandbox has said that it is ready. */
  loads = 0;
  readonly #address: SandboxAddress;
  #isSpare: boolean;
  #tries = 0;
  #until = Infinity;
  #onMissing = (): void => undefined;

  constructor(root: ShadowRoot, address: SandboxAddress, spare?: SpareGuard) {
    this.#address = address;
    this.#isSpare = Boolean(spare);
    const frame = spare?.element ?? element("iframe", { sandbox: FLAGS, part: "frame" });
    this.element = frame;
    if (address.allow) frame.setAttribute("allow", address.allow);
    frame.addEventListener("load", () => {
      if (this.#isSpare) {
        this.load(); // it was moved, or began again: it has forgotten what it was asked for
        return;
      }
      if (this.loads > 0) return;
      setTimeout(() => {
        if (!this.#isMissing) return;
        if (performance.now() < this.#until) this.load();
        else this.#onMissing();
      }, AGAIN);
    });
    if (spare) {
      spare.moveTo(root);
      this.#loadInSpare();
    } else {
      this.load();
      root.append(frame);
    }
  }

  get #place(): SandboxPlace {
    const { origin, number, allow } = this.#address;
    return { src: `${origin}${SANDBOX_PATH}?${number}`, allow };
  }

  load(): void {
    this.#hide();
    const inside = new URLSearchParams({ ...this.#place });
    this.#isSpare = false;
    this.#tries += 1;
    this.element.src = `${this.#address.guard}${SANDBOX_PATH}?${this.#tries}#${inside}`;
  }

  #loadInSpare(): void {
    this.#hide();
    tell(this.element, this.#address.guard, this.#place);
    setTimeout(() => {
      if (this.#isMissing && this.#isSpare) this.load(); // its process has ended, say
    }, SPARE_WITHIN);
  }

  /** Until it has a sandbox: there may be an error page in it, and nothing that a press is meant for. */
  #hide(): void {
    this.element.style.visibility = "hidden";
  }

  /** From now on there is a limit to how long the sandbox may take; `onMissing` is called then. */
  expect(onMissing: () => void): void {
    this.loads = 0;
    this.#until = performance.now() + AGAIN_FOR;
    this.#onMissing = onMissing;
    setTimeout(() => {
      if (this.#isMissing) onMissing();
    }, ANYTHING_WITHIN);
  }

  get #isMissing(): boolean {
    return this.element.isConnected && this.loads === 0;
  }

  /** The sandbox has said that it is ready. */
  onReady(): void {
    this.loads += 1;
    this.element.style.visibility = "";
  }

  /** The sandbox. To ask for a frame that is not there is an error. */
  get window(): Window | undefined {
    const guard = this.element.contentWindow;
    return guard?.length ? guard[0] : undefined;
  }

  /** What the guard says about the user's last press; nothing was pressed if it does not answer. */
  pressed(): Promise<Pressed> {
    return new Promise((resolve) => {
      setTimeout(resolve, GUARD_WITHIN, NOT_PRESSED);
      this.#tellGuard(PRESSED, resolve);
    });
  }

  /** The user has pressed something elsewhere. */
  tellElsewhere(): void {
    this.#tellGuard(ELSEWHERE);
  }

  #tellGuard(message: string, onAnswer?: OnAnswer): void {
    // Until the sandbox in it is ready, the guard may not be there, and nobody can press anything.
    if (this.loads > 0) tell(this.element, this.#address.guard, message, onAnswer);
  }
}
