/** The frames around a View on a page: its guard, and in that its sandbox. */
import { element } from "./dom.js";
import { ELSEWHERE, FLAGS, PRESSED, type Pressed, type SandboxAddress } from "./messages.js";

export const SANDBOX_PATH = "/transom-view"; // `transom.web.asgi` knows it
export const NOT_PRESSED: Pressed = { isRecent: false, isLast: false };

const AGAIN = 1000; // milliseconds until something else than the sandbox is loaded again
const AGAIN_FOR = 10_000; // milliseconds; less than a host waits for a View
const ANYTHING_WITHIN = 60_000; // milliseconds that a busy browser has to load anything at all
const GUARD_WITHIN = 300; // milliseconds that a guard has to answer

export class SandboxFrame {
  readonly element: HTMLIFrameElement;
  /** How often the sandbox has said that it is ready. */
  loads = 0;
  readonly #address: SandboxAddress;
  #tries = 0;
  #until = Infinity;
  #onMissing = (): void => undefined;

  constructor(address: SandboxAddress) {
    this.#address = address;
    const frame = (this.element = element("iframe", { sandbox: FLAGS, part: "frame" }));
    if (address.allow) frame.setAttribute("allow", address.allow);
    frame.addEventListener("load", () => {
      if (this.loads > 0) return;
      frame.style.visibility = "hidden"; // an error page of the browser, maybe for a moment only
      setTimeout(() => {
        if (!this.#isMissing) return;
        if (performance.now() < this.#until) this.load();
        else this.#onMissing();
      }, AGAIN);
    });
    this.load();
  }

  load(): void {
    const { origin, guard, number, allow } = this.#address;
    const inside = new URLSearchParams({ src: `${origin}${SANDBOX_PATH}?${number}`, allow });
    this.#tries += 1;
    this.element.src = `${guard}${SANDBOX_PATH}?${this.#tries}#${inside}`;
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
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      port1.addEventListener("message", ({ data }: MessageEvent<Pressed>) => resolve(data));
      port1.start();
      setTimeout(resolve, GUARD_WITHIN, NOT_PRESSED);
      this.#tellGuard(PRESSED, [port2]);
    });
  }

  /** The user has pressed something elsewhere. */
  tellElsewhere(): void {
    this.#tellGuard(ELSEWHERE);
  }

  #tellGuard(message: string, ports: MessagePort[] = []): void {
    // Until the sandbox in it is ready, the guard may not be there, and nobody can press anything.
    if (this.loads > 0)
      this.element.contentWindow?.postMessage(message, this.#address.guard, ports);
  }
}
