/**
 * One View on a page, in a sandbox on an origin of its own. It is not trusted: it can speak for
 * itself only, and everything shown about it is set as text.
 */
import { element, icon, rootOf, type IconName } from "./dom.js";
import {
  DRIVEN,
  ELSEWHERE,
  FLAGS,
  isAboutSandbox,
  methodOf,
  PRESSED,
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
  type Pressed,
  type SandboxedView,
  type Size,
  type Trouble,
  type ViewLabel,
} from "./messages.js";
import { AgentUse } from "./agent_use.js";
import { asMessage } from "./passing.js";
import type { Shield } from "./shield.js";
import {
  attribution,
  caption,
  grantList,
  leftOutNote,
  sentence,
  troubleBar,
  viewFacts,
  whyGone,
  type Acts,
} from "./view_parts.js";

export const SANDBOX_PATH = "/transom-view"; // `transom.web.asgi` knows it

const MODES: readonly string[] = ["inline", "fullscreen", "pip"];
const MAX_HEIGHT = 6000;
const MAX_LOADS = 10;
const MAX_REPORTS = 100; // of one View; the host keeps no more of them
const SANDBOX_WITHIN = 12_000; // less than a host waits for a View
const COOKIES = "If no View does, delete the cookies of its domain: they may be too many";
const SANDBOX_AGAIN = 1000; // milliseconds until something else than the sandbox is loaded again
const GUARD_WITHIN = 300; // milliseconds that a guard has to answer
const EMPTY_FOR = 500; // milliseconds that a sandbox without the View in it is not just being loaded

/** Whose View it is. */
export interface ViewAgent {
  readonly number: number;
  notify: (message: PageMessage) => void;
  /** Pass on a message of a View. */
  send: (view: string, text: string) => void;
}

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
}

/** A View while its sandbox is on the page. */
interface Mounted {
  readonly mount: Mount;
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
  loads: number;
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

/** The frame in a window, if there is one: to ask for one that is not there is an error. */
const childOf = (around?: Window | null): Window | undefined =>
  around?.length ? around[0] : undefined;

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
    return childOf(this.frame?.contentWindow);
  }

  get mode(): DisplayMode {
    return this.dataset.mode as DisplayMode;
  }

  /** Show what an agent mounts. */
  start(mount: Mount, around: ViewSurroundings): void {
    const { view, origin, guard, number, allow, border } = mount;
    this.#begin(mount, around, "loading");
    this.origin = origin;
    this.toggleAttribute("data-trouble", false);
    if (!border) this.dataset.border = "none";
    const starting = element("span", { class: "starting", text: "starting…" });
    const title = "It stays open until you close it";
    const pinned = { class: "pin", role: "img", title, "aria-label": "Pinned" };
    const pin = element("span", pinned, icon("pin"));
    const busy = element("span", { class: "busy", part: "busy", role: "timer", hidden: "" });
    const buttons = {
      info: this.#button("info", "About this View", () => {
        this.#toggleFacts();
      }),
      key: this.#button("key", "What is always allowed", () => {
        this.#toggleGrants();
      }),
      fullscreen: this.#button("fullscreen", "Full screen", () => {
        this.toggle("fullscreen");
      }),
      pip: this.#button("pip", "Picture in the corner", () => {
        this.toggle("pip");
      }),
      close: this.#button("close", "Close", () => {
        this.close();
      }),
    };
    const inside = new URLSearchParams({ src: `${origin}${SANDBOX_PATH}?${number}`, allow });
    let tries = 0;
    const load = (): void => {
      frame.src = `${guard}${SANDBOX_PATH}?${(tries += 1)}#${inside}`;
    };
    const about = { sandbox: FLAGS, title: this.ariaLabel!, part: "frame" };
    const frame = element("iframe", about);
    if (allow) frame.setAttribute("allow", allow);
    const use = new AgentUse(this.#shown, {
      post: this.post.bind(this),
      notify: (message) => {
        this.agent.notify({ view, ...message });
      },
      onShown: around.shield.raise.bind(around.shield, this),
    });
    const mounted: Mounted = {
      mount,
      use,
      frame,
      pin,
      busy,
      buttons,
      name: "",
      tools: [],
      facts: element("div"),
      grants: grantList(this.#shown, [], () => undefined),
      leftOut: leftOutNote(""),
      loads: 0,
      reports: 0,
      height: 0,
      isFilled: false,
    };
    frame.addEventListener("load", () => {
      if (mounted.loads > 0) return; // the sandbox has said that it is ready
      frame.style.visibility = "hidden"; // an error page of the browser, maybe for a moment only
      setTimeout(() => {
        if (this.#mounted === mounted && mounted.loads === 0) load();
      }, SANDBOX_AGAIN);
    });
    load();
    this.#mounted = mounted;
    const all = element("span", { class: "buttons" }, ...Object.values(buttons));
    const words = [this.#label, starting, pin, busy, use.note];
    this.#root.append(caption(...words, all), mounted.leftOut, frame);
    this.#showFacts(mounted);
    this.setMarks({ pinned: false, grants: [], leftOut: "" });
    this.#loading = setTimeout(() => {
      const reason = `${origin} did not load in the browser. ${COOKIES}`;
      this.agent.notify({ do: "broken", view, reason, value: true });
    }, SANDBOX_WITHIN);
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
    this.#root.replaceChildren();
  }

  /** Show in its place why it is gone, and what can be done. */
  showGone(message: Gone, around: ViewSurroundings): void {
    const { view, failed, reason, about } = message;
    const { agent } = around;
    this.#begin(message, around, failed ? "failed" : "closed");
    const call = about && !failed ? [element("span", { class: "about", text: about })] : [];
    const { text, more } = whyGone(message, this.isForAuthor);
    const acts = {
      [failed ? "Try again" : "Reopen"]: () => {
        agent.notify({ do: "retry", view });
      },
      [failed ? "Close" : "Dismiss"]: () => {
        agent.notify({ do: "closed", view });
      },
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

  #toggleFacts(): void {
    const { facts, buttons } = this.#mounted!;
    this.#toggle(facts, buttons.info);
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
    mounted.grants = grantList(this.#shown, grants, ({ tool, by }) => {
      this.agent.notify({ do: "withdraw", view: this.key, tool, by });
    });
    if (isOpen) this.#toggleGrants();
    else buttons.key.setAttribute("aria-expanded", "false");
  }

  #toggleGrants(): void {
    const { grants, buttons } = this.#mounted!;
    this.#toggle(grants, buttons.key);
  }

  /** Show what a button opens below the caption, or remove it. */
  #toggle(part: HTMLElement, button: HTMLButtonElement): void {
    const isOpen = !part.isConnected;
    if (isOpen) this.#root.querySelector(".caption")!.after(part);
    else part.remove();
    button.setAttribute("aria-expanded", String(isOpen));
    this.#around.shield.raise(this);
  }

  // --- what the user presses ------------------------------------------------------------------------

  #tellGuard(message: string, ports: MessagePort[] = []): void {
    const { frame, mount, loads } = this.#mounted ?? {};
    // Until the sandbox in it is ready, the guard may not be there, and nobody can press anything.
    if (loads) frame!.contentWindow?.postMessage(message, mount!.guard, ports);
  }

  /**
   * Whether the user has pressed something in it just now, as its guard says: after what was pressed
   * elsewhere, or `maybeBefore` that.
   */
  wasPressed(maybeBefore = false): Promise<boolean> {
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      port1.addEventListener("message", ({ data }: MessageEvent<Pressed>) => {
        resolve(data.isRecent && (data.isLast || maybeBefore));
      });
      port1.start();
      setTimeout(resolve, GUARD_WITHIN, false);
      this.#tellGuard(PRESSED, [port2]);
    });
  }

  /** The user has pressed something elsewhere: what was pressed in it before does not count. */
  tellElsewhere(): void {
    this.#tellGuard(ELSEWHERE);
  }

  /** Give the focus to its page. */
  focusInside(): void {
    childOf(this.window)?.focus();
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
    const wanted = Math.min(Math.ceil(Number(height)), MAX_HEIGHT);
    if (!(wanted > 0) || wanted === mounted.height) return;
    mounted.height = wanted;
    this.#around.shield.move(this, () => {
      mounted.frame.style.height = `${wanted}px`;
    });
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
    if (!mounted) return;
    const method = methodOf(data);
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
  setTrouble({ reason, busyFor }: Trouble): void {
    const mounted = this.#mounted;
    if (!mounted) return;
    this.#countBusy(mounted, busyFor);
    mounted.trouble?.remove();
    this.toggleAttribute("data-trouble", Boolean(reason));
    if (!reason) {
      if (busyFor === null) this.#onRecovered();
      return;
    }
    const { key: view } = this;
    mounted.trouble = troubleBar(this.#shown, `It does not respond: ${sentence(reason)}`, {
      Reload: () => {
        this.agent.notify({ do: "reload", view });
      },
      Close: () => {
        this.close();
      },
    });
    mounted.frame.before(mounted.trouble);
    this.#around.shield.raise(this);
    this.#fireProblem("unresponsive", reason);
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
    const { frame, mount } = mounted;
    clearTimeout(this.#loading);
    frame.style.visibility = "";
    mounted.loads += 1;
    if (mounted.loads > MAX_LOADS) {
      const reason = "it keeps reloading itself";
      this.agent.notify({ do: "broken", view: this.key, reason });
      return;
    }
    const params: SandboxedView = { html: mount.html, allow: mount.allow };
    this.post({ jsonrpc: "2.0", method: RESOURCE_READY, params });
  }
}
