/**
 * The Views on a page, of all agents; two agents may call theirs the same. A View is known by its
 * window and origin. Where a View scrolls the page, it moves what is around it.
 */
import { element } from "./dom.js";
import { Focus } from "./focus.js";
import type { DisplayMode, Gone, Mount, Prepare, SandboxAddress } from "./messages.js";
import { SANDBOX_PATH, SandboxFrame, SpareGuard } from "./sandbox_frame.js";
import { Shield } from "./shield.js";
import type { View, ViewAgent, ViewSurroundings } from "./view.js";

const LOOK_EVERY = 1000; // milliseconds between two looks whether the pages of Views are there
const SPARE_AFTER = 500; // milliseconds after a View is initialised, which its host then asks for its tools
const SCROLLED_FOR = 500; // milliseconds that a page goes on scrolling

const keyOf = (agent: ViewAgent, id: string): string => `${agent.number} ${id}`;

export class Views {
  readonly #views = new Map<string, View>();
  #prepared: { agent: ViewAgent; number: number; view: View } | undefined; // for the next one
  #spare: SpareGuard | undefined;
  #preparing: ReturnType<typeof setTimeout> | undefined; // the spare
  readonly #placeOf: (id: string) => View;
  readonly #onFront: () => void;
  #forward = 0; // how often a View was brought forward
  readonly #shield = new Shield();
  readonly #focus = new Focus(() => this.#views.values());

  /**
   * `placeOf` has the element where a View is shown: the page's own, or one that is made. `onFront` is
   * called when another View may be in front, or is called otherwise.
   */
  constructor(placeOf: (id: string) => View, onFront: () => void = () => undefined) {
    this.#placeOf = placeOf;
    this.#onFront = onFront;
    window.addEventListener("message", ({ source, origin, data }) => {
      const receive = (view: View): void => {
        if (view.origin === origin && view.window === source) view.receive(data);
      };
      this.#views.forEach(receive);
      if (this.#prepared) receive(this.#prepared.view);
    });
    addEventListener("keydown", ({ key }) => {
      if (key === "Escape") this.fullscreen?.setMode("inline");
    });
    this.#watchScrolling();
    setInterval(() => {
      for (const view of this.#views.values()) view.look();
    }, LOOK_EVERY);
  }

  /**
   * A View can scroll the page, so that the second press of two is for something else. A scroll that
   * the user did not make here, soon after a press in a View, counts as its.
   */
  #watchScrolling(): void {
    let scrolledAt = -Infinity;
    const note = (): void => {
      scrolledAt = performance.now();
    };
    for (const name of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      addEventListener(name, note, { capture: true, passive: true });
    }
    const onScroll = async (): Promise<void> => {
      if (performance.now() - scrolledAt < SCROLLED_FOR) return;
      const views = [...this.#views.values()];
      const werePressed = await Promise.all(views.map((view) => view.wasPressed()));
      const pressed = views.filter((_, index) => werePressed[index]);
      if (pressed.length > 0) this.#shield.extend(pressed.length === 1 ? pressed[0] : undefined);
    };
    addEventListener("scroll", () => void onScroll(), true);
  }

  get(agent: ViewAgent, id: string): View | undefined {
    return this.#views.get(keyOf(agent, id));
  }

  /** Load the sandbox that the next View may have. */
  prepare(agent: ViewAgent, message: Prepare): void {
    this.#takePrepared(agent)?.remove();
    const view = this.#placeOf("");
    view.prepare(message, this.#frameIn);
    this.#prepared = { agent, number: message.number, view };
  }

  #takePrepared(agent: ViewAgent, number?: number): View | undefined {
    const prepared = this.#prepared;
    if (prepared?.agent !== agent) return undefined;
    this.#prepared = undefined;
    if (number === undefined || prepared.number === number) return prepared.view;
    prepared.view.remove();
    return undefined;
  }

  mount(agent: ViewAgent, message: Mount): void {
    const view = this.#take(agent, message.view, this.#takePrepared(agent, message.number));
    view.start(message, this.#around(agent, view));
    this.#show(view);
    if (view.isPlaced) view.sendMode();
  }

  /** Show that a View is gone, until it is mounted again or dropped. */
  showGone(agent: ViewAgent, message: Gone): void {
    const view = this.#take(agent, message.view);
    view.showGone(message, this.#around(agent, view));
    if (message.failed) this.#show(view);
    else this.#shield.raise();
  }

  /** Load these origins, which answer that the browser should delete its storage for them. */
  clearStorage(origins: string[]): void {
    for (const origin of origins) {
      const about = { src: `${origin}${SANDBOX_PATH}`, sandbox: "", hidden: "" };
      const frame = element("iframe", about);
      frame.addEventListener("load", () => frame.remove());
      document.body.append(frame);
    }
  }

  #take(agent: ViewAgent, id: string, prepared?: View): View {
    this.drop(agent, id);
    const view = prepared ?? this.#placeOf(id);
    this.#views.set(keyOf(agent, id), view);
    return view;
  }

  #show(view: View): void {
    this.#bringForward(view);
    this.#shield.raise();
    if (!view.isPlaced) view.scrollIntoView({ block: "nearest" });
  }

  /** Put it before the others. A frame that is moved in the document is loaded again; a style moves it, too. */
  #bringForward(view: View): void {
    if (view.isPlaced || view.style.order === String(-this.#forward)) return;
    this.#forward += 1;
    view.style.order = String(-this.#forward);
    this.#onFront();
  }

  #around(agent: ViewAgent, view: View): ViewSurroundings {
    return {
      agent,
      place: view.isPlaced ? view : view.parentElement!,
      makeRoom: this.#makeRoom,
      rearrange: this.#rearrange,
      shield: this.#shield,
      onNamed: this.#onFront,
      onTab: (tabbed) => this.#focus.onTab(tabbed),
      frameIn: this.#frameIn,
      onLive: this.#prepareGuard,
    };
  }

  readonly #frameIn = (root: ShadowRoot, address: SandboxAddress): SandboxFrame => {
    const isPossible = root.isConnected && !address.allow && this.#spare?.suits(address);
    const spare = isPossible ? this.#spare : undefined;
    if (spare) this.#spare = undefined;
    return new SandboxFrame(root, address, spare);
  };

  /** Load a guard for the View that is opened next: it is probably the same agent's. */
  readonly #prepareGuard = (address: SandboxAddress): void => {
    if (!SpareGuard.isPossible) return;
    clearTimeout(this.#preparing);
    this.#preparing = setTimeout(() => {
      if (this.#spare?.suits(address)) return;
      this.#spare?.remove();
      this.#spare = new SpareGuard(address.guard);
    }, SPARE_AFTER);
  };

  drop(agent: ViewAgent, id: string): void {
    const view = this.get(agent, id);
    if (!view) return;
    this.#views.delete(keyOf(agent, id));
    if (view.isPlaced) view.note("");
    else view.remove();
    this.#shield.raise();
    this.#rearrange();
  }

  /** Drop all of one agent's. */
  clear(agent: ViewAgent): void {
    this.#takePrepared(agent)?.remove();
    for (const shown of this.#of(agent)) this.drop(agent, shown.key);
  }

  /** Mark the View that a question is about, and bring it into sight. Returns its frame, if any. */
  pointAt(agent?: ViewAgent, id?: string): HTMLIFrameElement | undefined {
    const view = agent && id !== undefined ? this.get(agent, id) : undefined;
    for (const other of this.#views.values())
      other.toggleAttribute("data-question", other === view);
    if (!view?.frame) return undefined;
    this.#bringForward(view);
    this.#shield.raise();
    view.scrollIntoView({ block: "nearest" });
    return view.frame;
  }

  /** Whether an agent can be reached: the Views of one that cannot are dimmed. */
  setReached(agent: ViewAgent, isReached: boolean): void {
    for (const view of this.#of(agent)) view.toggleAttribute("data-lost", !isReached);
  }

  #of(agent: ViewAgent): View[] {
    return [...this.#views.values()].filter((view) => view.agent === agent);
  }

  /** The page has another size: notify Views that are not inline, or whose place is the page's own. */
  onResized(): void {
    for (const view of this.#views.values()) {
      if (view.isPlaced || view.mode !== "inline") view.sendMode();
    }
  }

  /** The View that the user sees first: the one that covers the page, or was last brought forward. */
  get front(): View | undefined {
    const open = [...this.#views.values()].filter(({ frame, hidden }) => frame && !hidden);
    const [first] = open.sort((one, other) => Number(one.style.order) - Number(other.style.order));
    return this.fullscreen ?? first;
  }

  /** The View that covers the page, if one does. */
  get fullscreen(): View | undefined {
    return [...this.#views.values()].find((view) => view.mode === "fullscreen" && !view.hidden);
  }

  readonly #makeRoom = (view: View, mode: DisplayMode): void => {
    for (const other of this.#views.values()) {
      if (other !== view && other.mode === mode) other.setMode("inline");
    }
  };

  /** Make what a View covers unreachable. */
  readonly #rearrange = (): void => {
    const top = this.fullscreen;
    document.body.toggleAttribute("data-covered", top !== undefined);
    for (const view of this.#views.values()) view.inert = top !== undefined && view !== top;
    this.#onFront();
  };
}
