/**
 * One View on a page, in a sandbox on an origin of its own. It is not trusted: it can speak for
 * itself only, and everything shown about it is set as text.
 */
import { element, icon, rootOf, type IconName } from "./dom.js";
import {
  DRIVEN,
  isAboutSandbox,
  methodOf,
  PROXY_READY,
  RESOURCE_READY,
  TAB_PRESSED,
  VIEW_GONE,
  type DisplayMode,
  type Drive,
  type Gone,
  type Marks,
  type Mount,
  type Named,
  type OfferedTool,
  type PageMessage,
  type SandboxAddress,
  type SandboxedView,
  type Size,
  type Trouble,
  type ViewLabel,
} from "./messages.js";
import { AgentUse } from "./agent_use.js";
import { asMessage } from "./passing.js";
import { NOT_PRESSED, type SandboxFrame } from "./sandbox_frame.js";
import type { Shield } from "./shield.js";
import {
  attribution,
  caption,
  grantList,
  leftOutNote,
  troubleBar,
  viewFacts,
  whyNotShown,
  type Acts,
} from "./view_parts.js";

const MODES: readonly string[] = ["inline", "fullscreen", "pip"];
const MAX_HEIGHT = 6000;
const MAX_LOADS = 10;
const MAX_REPORTS = 100; // of one View; the host keeps no more of them
const COOKIES = "If no View does, delete the cookies of its domain: they may be too many";
const FILLED_WITHIN = 2000; // milliseconds that a sandbox which was there before has to show the View
const EMPTY_FOR = 500; // milliseconds that a sandbox without the View in it is not just being loaded

/** Whose View it is. */
export interface ViewAgent {
  readonly number: number;
  notify: (message: PageMessage) => void;
  /** Pass on a message of a View. */
  send: (view: string, text: string) => void;
}

export type FrameIn = (root: ShadowRoot, address: SandboxAddress) => SandboxFrame;

/** What a View can do on its page. */
export interface ViewSurroundings {
  readonly agent: ViewAgent;
  /** The element whose width it has. */
  readonly place: HTMLElement;
  /** Let no other View be shown in this mode. */
  makeRoom: (view: View, mode: DisplayMode) => void;
  /** The Views may cover each other in another way now. */
  rearrange: () => void;
  /** Where a press may be meant for what was there before, nothing takes it. */
  readonly shield: Shield;
  /** It is called otherwise now. */
  onNamed: () => void;
  /** Its user pressed Tab. */
  onTab: (view: View) => void;
  /** Load its sandbox, in the last place of its own. */
  readonly frameIn: FrameIn;
  /** It is initialised, in this sandbox. */
  onLive: (address: SandboxAddress) => void;
}

/** A View while its sandbox is on the page. */
interface Mounted {
  readonly mount: Mount;
  readonly sandbox: SandboxFrame;
  readonly frame: HTMLIFrameElement;
  readonly pin: HTMLElement;
  readonly busy: HTMLElement;
  readonly buttons: Record<Exclude<IconName, "pin">, HTMLButtonElement>;
  /** What its agent does in it, as a user would. */
  readonly use: AgentUse;
  name: string;
  tools: OfferedTool[];
  facts: HTMLElement;
  grants: HTMLElement;
  leftOut: HTMLElement;
  trouble?: HTMLElement;
  reports: number;
  height: number;
  /** Whether the sandbox has had the View in it. */
  isFilled: boolean;
}

type Report = Extract<PageMessage, { do: "refused" | "vanished" }>;
/** What a page is told of: see `ViewProblem` in `elements.ts`. */
type ProblemKind = "failed" | "unresponsive";

type Timer = ReturnType<typeof setTimeout> | undefined;

/** How large a View may be where it stands among the others. */
export function inlineSize(place: HTMLElement): Size {
  const { paddingLeft, paddingRight } = getComputedStyle(place);
  const width = place.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - 2;
  return { width: Math.max(0, Math.floor(width)), maxHeight: MAX_HEIGHT };
}

export class View extends HTMLElement {
  /** Whether the page decides where it is, and removes it. */
  readonly isPlaced: boolean = false;
  /** Whether the author of its server is looking: what went wrong is said in full. */
  isForAuthor = false;
  /** What its agent calls it. Not `view`, which is the attribute of a page that places it. */
  key = "";
  origin = "";
  /** For the page's own title: a tab has little room, so the host's words come first. */
  tabTitle = "";
  #shown = "";
  #label!: HTMLElement; // what it calls itself, and whose it is
  readonly #root = rootOf(this);
  #around!: ViewSurroundings; // since it was first mounted, or shown as gone
  #prepared: SandboxFrame | undefined; // until something is mounted
  #mounted: Mounted | undefined;
  #problem: ProblemKind | undefined; // that the page was told of
  #loading: Timer;
  #counting: Timer;

  get agent(): ViewAgent {
    return this.#around.agent;
  }

  get frame(): HTMLIFrameElement | undefined {
    return this.#mounted?.frame;
  }

  /** The sandbox, which is in the guard. */
  get window(): Window | undefined {
    return (this.#mounted?.sandbox ?? this.#prepared)?.window;
  }

  get mode(): DisplayMode {
    return this.dataset.mode as DisplayMode;
  }

  /** Load the sandbox for what will be mounted. */
  prepare(address: SandboxAddress, frameIn: FrameIn): void {
    this.hidden = true;
    this.origin = address.origin;
    this.#prepared = frameIn(this.#root, address);
  }

  /** Show what an agent mounts. */
  start(mount: Mount, around: ViewSurroundings): void {
    const { view, origin, border } = mount;
    this.#begin(mount, around, "loading");
    const sandbox = this.#prepared ?? around.frameIn(this.#root, mount);
    const frame = sandbox.element;
    frame.title = this.ariaLabel!;
    this.origin = origin;
    this.toggleAttribute("data-trouble", false);
    if (!border) this.dataset.border = "none";
    const starting = element("span", { class: "starting", text: "starting…" });
    const title = "It stays open until you close it";
    const pinned = { class: "pin", role: "img", title, "aria-label": "Pinned" };
    const pin = element("span", pinned, icon("pin"));
    const busy = element("span", { class: "busy", part: "busy", role: "timer", hidden: "" });
    const buttons = {
      info: this.#button("info", "About this View", () => this.#toggle("facts")),
      key: this.#button("key", "What is always allowed", () => this.#toggle("grants")),
      fullscreen: this.#button("fullscreen", "Full screen", () => this.toggle("fullscreen")),
      pip: this.#button("pip", "Picture in the corner", () => this.toggle("pip")),
      close: this.#button("close", "Close", () => this.close()),
    };
    const use = new AgentUse(this.#shown, {
      post: this.post.bind(this),
      isFilled: () => Boolean(this.window?.length),
      notify: (message) => this.agent.notify({ view, ...message }),
      onShown: around.shield.raise.bind(around.shield, this),
    });
    const mounted: Mounted = {
      mount,
      use,
      sandbox,
      frame,
      pin,
      busy,
      buttons,
      name: "",
      tools: [],
      facts: element("div"),
      grants: grantList(this.#shown, [], () => undefined),
      leftOut: leftOutNote(""),
      reports: 0,
      height: 0,
      isFilled: false,
    };
    this.#mounted = mounted;
    const all = element("span", { class: "buttons" }, ...Object.values(buttons));
    const words = [this.#label, starting, pin, busy, use.note];
    this.#prepared = undefined;
    frame.before(caption(...words, all), mounted.leftOut);
    this.#showFacts(mounted);
    this.setMarks({ pinned: false, grants: [], leftOut: "" });
    if (sandbox.loads > 0) this.#fillPrepared(mounted);
    else this.#expect(sandbox);
  }

  #expect(sandbox: SandboxFrame): void {
    const { origin, key: view } = this;
    sandbox.expect(() => {
      const reason = `${origin} did not load in the browser. ${COOKIES}`;
      this.agent.notify({ do: "broken", view, reason, value: true });
    });
  }

  #begin(label: ViewLabel, around: ViewSurroundings, state: string): void {
    const { view, shown = view } = label;
    const { number } = around.agent;
    this.#around = around;
    if (this.key !== view) this.#problem = undefined;
    this.key = view;
    this.#shown = shown;
    this.id ||= `view-${number ? `${number}:` : ""}${view}`;
    this.dataset.mode = "inline";
    this.#end(state);
    this.setAttribute("role", "region");
    this.#label = this.#name(label);
  }

  #name(label: ViewLabel): HTMLElement {
    const made = attribution(label);
    this.ariaLabel = made.textContent;
    this.tabTitle = `${label.server}: ${label.title || this.#shown}`;
    this.#around.onNamed();
    return made;
  }

  #end(state: string): void {
    clearTimeout(this.#loading);
    clearInterval(this.#counting);
    this.#mounted = undefined;
    this.hidden = false;
    this.dataset.state = state;
    for (const part of [...this.#root.children]) {
      if (part !== this.#prepared?.element) part.remove();
    }
  }

  /** Show in its place why it is gone, and what can be done. */
  showGone(message: Gone, around: ViewSurroundings): void {
    const { view, failed, reason, about } = message;
    const { agent } = around;
    this.#begin(message, around, failed ? "failed" : "closed");
    const call = about && !failed ? [element("span", { class: "about", text: about })] : [];
    const { text, more } = whyNotShown(message, this.isForAuthor);
    const acts = {
      [failed ? "Try again" : "Reopen"]: () => agent.notify({ do: "retry", view }),
      [failed ? "Close" : "Dismiss"]: () => agent.notify({ do: "closed", view }),
    };
    const bar = troubleBar(this.#shown, text, acts, { role: failed ? "alert" : "group", more });
    this.#root.append(caption(this.#label, ...call), bar);
    if (failed) this.#fireProblem("failed", reason);
  }

  #fireProblem(kind: ProblemKind, message: string): void {
    this.#problem = kind;
    this.#fire("problem", { view: this.key, kind, message });
  }

  /** It is shown and responds. */
  #onRecovered(): void {
    const kind = this.#problem;
    this.#problem = undefined;
    if (kind) this.#fire("recovered", { view: this.key, kind });
  }

  #fire(name: "problem" | "recovered", detail: object): void {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
  }

  /** Show a sentence in its place, and buttons for what can be done. */
  note(text: string, acts: Acts = {}): void {
    this.#end("noted");
    this.#root.append(troubleBar(this.getAttribute("view") ?? this.#shown, text, acts));
  }

  #button(name: IconName, label: string, act: () => void): HTMLButtonElement {
    const attributes = { type: "button", title: label, "aria-label": `${label}: ${this.#shown}` };
    const made = element("button", attributes, icon(name));
    made.addEventListener("click", act);
    return made;
  }

  disconnectedCallback(): void {
    clearTimeout(this.#loading);
    clearInterval(this.#counting);
  }

  /** What the View says of itself. */
  setName({ title, name, version }: Named): void {
    const mounted = this.#mounted;
    if (!mounted) return;
    mounted.name = `${name} ${version}`.trimEnd();
    const label = this.#name({ ...mounted.mount, title });
    const { offsetHeight } = this.#label;
    this.#label.replaceWith(label);
    this.#label = label;
    mounted.frame.title = label.textContent;
    if (label.offsetHeight !== offsetHeight) this.#around.shield.raise(this);
    this.#showFacts(mounted);
  }

  /** Which tools it has. */
  setTools(tools: OfferedTool[]): void {
    if (!this.#mounted) return;
    this.#mounted.tools = tools;
    this.#showFacts(this.#mounted);
  }

  #showFacts(mounted: Mounted): void {
    const { mount, name, tools, buttons } = mounted;
    const { server, client = "", uri } = mount;
    const facts = { "Calls itself": name, Id: this.#shown, Server: server, For: client, Page: uri };
    const made = viewFacts(this.#label.textContent, facts, tools);
    const isOpen = mounted.facts.isConnected;
    if (isOpen) {
      mounted.facts.replaceWith(made);
      this.#around.shield.raise(this);
    }
    mounted.facts = made;
    buttons.info.setAttribute("aria-expanded", String(isOpen));
  }

  /** Whether it stays open, which tools always run, and which are left out. */
  setMarks({ pinned, grants, leftOut }: Pick<Marks, "pinned" | "grants" | "leftOut">): void {
    const mounted = this.#mounted;
    if (!mounted) return;
    const note = leftOutNote(leftOut);
    if (note.textContent !== mounted.leftOut.textContent) {
      mounted.leftOut.replaceWith(note);
      mounted.leftOut = note;
      this.#around.shield.raise(this);
    }
    const { pin, buttons } = mounted;
    pin.hidden = !pinned;
    buttons.key.hidden = grants.length === 0;
    const isOpen = mounted.grants.isConnected && grants.length > 0;
    mounted.grants.remove();
    mounted.grants = grantList(this.#shown, grants, ({ tool, by }) =>
      this.agent.notify({ do: "withdraw", view: this.key, tool, by }),
    );
    if (isOpen) this.#toggle("grants");
    else buttons.key.setAttribute("aria-expanded", "false");
  }

  /** Show what a button opens below the caption, or remove it. */
  #toggle(name: "facts" | "grants"): void {
    const { [name]: part, buttons } = this.#mounted!;
    const isOpen = !part.isConnected;
    if (isOpen) this.#root.querySelector(".caption")!.after(part);
    else part.remove();
    const button = name === "facts" ? buttons.info : buttons.key;
    button.setAttribute("aria-expanded", String(isOpen));
    this.#around.shield.raise(this);
  }

  // --- what the user presses ------------------------------------------------------------------------

  /**
   * Whether the user has pressed something in it just now, as its guard says: after what was pressed
   * elsewhere, or `maybeBefore` that.
   */
  async wasPressed(maybeBefore = false): Promise<boolean> {
    const { isRecent, isLast } = (await this.#mounted?.sandbox.pressed()) ?? NOT_PRESSED;
    return isRecent && (isLast || maybeBefore);
  }

  /** The user has pressed something elsewhere: what was pressed in it before does not count. */
  tellElsewhere(): void {
    this.#mounted?.sandbox.tellElsewhere();
  }

  /** Give the focus to its page. */
  focusInside(): void {
    if (this.window?.length) this.window[0]!.focus();
  }

  // --- how it is shown ------------------------------------------------------------------------------

  toggle(mode: DisplayMode): void {
    this.setMode(this.mode === mode ? "inline" : mode);
  }

  setMode(mode: DisplayMode): void {
    if (!MODES.includes(mode)) return;
    if (mode !== "inline") this.#around.makeRoom(this, mode);
    if (this.mode !== mode) this.#around.shield.raise();
    this.dataset.mode = mode;
    for (const name of ["fullscreen", "pip"] as const) {
      this.#mounted?.buttons[name].setAttribute("aria-pressed", String(mode === name));
    }
    this.#around.rearrange();
    this.sendMode();
  }

  /** Tell the host how it is shown, and how large it may be. */
  sendMode(): void {
    if (!this.frame) return;
    const { clientWidth: width, clientHeight: height } = this.frame;
    const { mode, key: view } = this;
    const size = mode === "inline" ? inlineSize(this.#around.place) : { width, height };
    this.agent.notify({ do: "mode", view, mode, size });
  }

  /** Have the page of the View read or used. */
  drive(message: Drive): void {
    this.#mounted?.use.drive(message);
  }

  /** The host lets the View clean up, then removes it. */
  close(): void {
    this.hidden = true;
    this.#around.rearrange();
    this.agent.notify({ do: "closed", view: this.key });
  }

  #resize(mounted: Mounted, params: unknown): void {
    const { height } = Object(params) as { height?: unknown };
    const wanted = typeof height === "number" ? Math.min(Math.ceil(height), MAX_HEIGHT) : 0;
    if (!(wanted > 0) || wanted === mounted.height) return;
    const isFirst = mounted.height === 0;
    mounted.height = wanted;
    const change = (): void => {
      mounted.frame.style.height = `${wanted}px`;
    };
    // The first one of a View that opens does not wait for others that do not stop.
    if (isFirst) this.#around.shield.moveNow(new Map([[this, change]]));
    else this.#around.shield.move(this, change);
  }

  // --- messages -------------------------------------------------------------------------------------

  /** Pass on a message of the host. */
  post(message: unknown): void {
    this.window?.postMessage(message, this.origin);
    this.look();
  }

  /**
   * A loaded sandbox has one frame, the View. It has none when its process has ended or another
   * page has taken its place; a page gets no event of either.
   */
  look(): void {
    const mounted = this.#mounted;
    if (!mounted) return;
    if (this.window?.length) mounted.isFilled = true;
    else if (mounted.isFilled) {
      mounted.isFilled = false;
      setTimeout(() => {
        if (this.#mounted !== mounted || this.window?.length) return;
        this.#report(mounted, "vanished", "its page crashed or was unloaded");
      }, EMPTY_FOR);
    }
  }

  /** A message of the sandbox, or of the View in it. */
  receive(data: unknown): void {
    const mounted = this.#mounted;
    const method = methodOf(data);
    if (!mounted) {
      if (method === PROXY_READY) this.#prepared?.onReady();
      return;
    }
    if (isAboutSandbox(data)) {
      if (method === PROXY_READY) this.#load(mounted);
      else if (method === VIEW_GONE) {
        this.#report(mounted, "vanished", "its page shows something else now");
      } else if (method === TAB_PRESSED) this.#around.onTab(this);
      else if (method === DRIVEN) mounted.use.answer((data as { params?: unknown }).params);
      return;
    }
    if (method === "ui/notifications/size-changed") {
      this.#resize(mounted, (data as { params?: unknown }).params);
    } else if (method === "ui/notifications/initialized") {
      if (this.dataset.state !== "live") this.#around.onLive(mounted.mount); // it may say so often
      this.dataset.state = "live";
      this.#onRecovered();
    }
    const { text, why } = asMessage(data);
    if (why) this.#refuse(mounted, data, why);
    else this.agent.send(this.key, text);
  }

  /** Report what cannot be passed on, and answer in its place, so that nobody waits for it. */
  #refuse(mounted: Mounted, data: unknown, why: string): void {
    const { id, method } = Object(data) as { id?: unknown; method?: unknown };
    this.#report(mounted, "refused", `A message ${why}`);
    if (method === undefined && (typeof id === "number" || typeof id === "string")) {
      const error = { code: -32603, message: `The View's answer ${why}: it was not passed on` };
      this.agent.send(this.key, JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
  }

  #report(mounted: Mounted, what: Report["do"], reason: string): void {
    mounted.reports += 1;
    if (mounted.reports > MAX_REPORTS) return;
    this.agent.notify({ do: what, view: this.key, reason });
  }

  /** Show that it is busy, or why it does not respond and what can be done; or neither. */
  setTrouble({ reason: why, failed, busyFor }: Trouble): void {
    const mounted = this.#mounted;
    if (!mounted) return;
    this.#countBusy(mounted, busyFor);
    mounted.trouble?.remove();
    this.toggleAttribute("data-trouble", Boolean(why));
    if (!why) {
      if (busyFor === null) this.#onRecovered();
      return;
    }
    const { key: view } = this;
    const reason = failed ? why : `It does not respond: ${why}`;
    const about = { failed, reason, server: mounted.mount.server };
    const { text, more } = whyNotShown(about, this.isForAuthor, "This page has not started.");
    const acts = {
      Reload: () => this.agent.notify({ do: "reload", view }),
      Close: () => this.close(),
    };
    mounted.trouble = troubleBar(this.#shown, text, acts, { more });
    mounted.frame.before(mounted.trouble);
    this.#around.shield.raise(this);
    this.#fireProblem(failed ? "failed" : "unresponsive", why);
  }

  /** Count in the caption for how many seconds it has not answered; null: it does. */
  #countBusy({ busy }: Mounted, seconds: number | null): void {
    clearInterval(this.#counting);
    busy.hidden = seconds === null;
    if (seconds === null) return;
    const since = performance.now() - seconds * 1000;
    const show = (): void => {
      busy.textContent = `busy for ${Math.round((performance.now() - since) / 1000)} s`;
    };
    show();
    this.#counting = setInterval(show, 1000);
  }

  #load(mounted: Mounted): void {
    const { sandbox } = mounted;
    clearTimeout(this.#loading);
    sandbox.onReady();
    if (sandbox.loads > MAX_LOADS) {
      const reason = "it keeps reloading itself";
      this.agent.notify({ do: "broken", view: this.key, reason });
    } else this.#fill(mounted);
  }

  #fill({ mount: { html, allow } }: Mounted): void {
    const params: SandboxedView = { html, allow };
    this.post({ jsonrpc: "2.0", method: RESOURCE_READY, params });
  }

  /** Fill a sandbox that was there before; one that does not respond any more is loaded again. */
  #fillPrepared(mounted: Mounted): void {
    this.#fill(mounted);
    this.#loading = setTimeout(() => {
      this.look();
      if (mounted.isFilled) return;
      this.#expect(mounted.sandbox);
      mounted.sandbox.load();
    }, FILLED_WITHIN);
  }
}
