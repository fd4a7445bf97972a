/**
 * Views on a page, each in a sandbox on an origin of its own. None is trusted: a View is known
 * by its window and origin, and can speak for itself only. Everything shown about one is set
 * as text.
 */
import styles from "./views.css";

const SANDBOX = "ui/notifications/sandbox-";
const MODES = ["inline", "fullscreen", "pip"];
const FLAGS = "allow-scripts allow-same-origin allow-forms";
const MAX_MESSAGE = 16 * 1024 * 1024; // bytes, as the host takes
const MAX_HEIGHT = 6000;
const MAX_LOADS = 10;
const MAX_REPORTS = 100; // of one View; the host keeps no more of them
const PAGE = "/transom-view"; // `transom.web.asgi` knows it
const SANDBOX_WITHIN = 12_000; // less than a host waits for a View
const SANDBOX_AGAIN = 1000; // milliseconds until something else than the sandbox is loaded again
const LOOK_EVERY = 1000; // milliseconds between two looks whether the pages of Views are there
const EMPTY_FOR = 500; // milliseconds that a sandbox without the View in it is not just being loaded
const STILL_AFTER = 500; // milliseconds until what has moved takes presses again
const MOVES = 8; // pixels of height that others notice

const ICONS = {
  fullscreen: "M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",
  pip: "M3 4h14v12H3zM11 10h4v4h-4z",
  close: "M5 5l10 10M15 5L5 15",
  pin: "M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",
  key: "M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z",
};

/** The styles of everything here, independent of those of the page around it. */
const looks = new CSSStyleSheet();
looks.replaceSync(styles);

/** A root of its own for what is shown in an element. */
export function rootOf(place) {
  const root = place.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [looks];
  return root;
}

export function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * The host's own label of a View. It comes first wherever a View or its requests are shown, and is
 * never cut off: the View's own name follows.
 */
export function attribution({ view, shown = view, server, client }) {
  const parts = [element("b", { text: shown }), " from ", element("b", { text: server })];
  if (client) parts.push(" for ", element("b", { text: client }));
  return element("span", { class: "whose", part: "whose" }, ...parts);
}

/** How large a View may be where it stands among the others. */
export function inlineSize(place) {
  const { paddingLeft, paddingRight } = getComputedStyle(place);
  const width = place.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - 2;
  return { width: Math.max(0, Math.floor(width)), maxHeight: MAX_HEIGHT };
}

/** A character takes up to three bytes; only what could be too large is measured. */
const isTooLarge = (text) =>
  text.length * 3 > MAX_MESSAGE &&
  (text.length > MAX_MESSAGE || new Blob([text]).size > MAX_MESSAGE);

export class View extends HTMLElement {
  #root = rootOf(this);
  #mount;
  #stage;
  #loads = 0;
  #reports = 0;
  #trouble = null;
  #busy = null;
  #counting = 0;
  #filled = false;
  #pin = null;
  #grants = null;
  #height = 0;
  #waiting = 0;
  #buttons = {};

  /** Show what an agent mounts; `stage` has `notify(message)`, `send(view, text)`, `place`. */
  start(mount, stage) {
    const { view, origin, number, allow, border } = mount;
    const whose = this.#begin(mount, stage, "loading");
    const { shown } = this;
    this.origin = origin;
    this.#mount = mount;
    this.#loads = this.#reports = this.#height = 0;
    this.toggleAttribute("data-trouble", false);
    if (!border) this.dataset.border = "none";
    this.own = element("span", { class: "own" }, element("span", { class: "starting", text: "starting…" }));
    const pinned = { class: "pin", role: "img", title: "It stays open until you close it", "aria-label": "Pinned" };
    this.#pin = element("span", pinned, icon("pin"));
    this.#busy = element("span", { class: "busy", part: "busy", role: "timer", hidden: "" });
    this.#filled = false;
    const buttons = element(
      "span",
      { class: "buttons" },
      this.#button("key", "What is always allowed", () => this.#toggleGrants()),
      this.#button("fullscreen", "Full screen", () => this.toggle("fullscreen")),
      this.#button("pip", "Picture in the corner", () => this.toggle("pip")),
      this.#button("close", "Close", () => this.close()),
    );
    const title = `View ${shown}`;
    const src = `${origin}${PAGE}?${number}`;
    this.frame = element("iframe", { sandbox: FLAGS, title, src, part: "frame" });
    if (allow) this.frame.setAttribute("allow", allow);
    this.frame.addEventListener("load", ({ target }) => {
      if (this.#loads > 0) return; // the sandbox has said that it is ready
      target.style.visibility = "hidden"; // an error page of the browser, maybe for a moment only
      setTimeout(() => {
        if (target === this.frame && this.#loads === 0) target.src = src;
      }, SANDBOX_AGAIN);
    });
    this.#root.append(caption(whose, this.#pin, this.#busy, this.own, buttons), this.frame);
    this.setMarks({ pinned: false, grants: [] });
    this.#waiting = setTimeout(() => {
      const reason = `${origin} did not load in the browser`;
      this.#stage.notify({ do: "broken", view, reason, value: true });
    }, SANDBOX_WITHIN);
  }

  #begin(about, stage, state) {
    const { view, shown = view } = about;
    this.#stage = stage;
    this.view = view;
    this.shown = shown;
    this.id ||= `view-${stage.mark}${view}`;
    this.dataset.mode = "inline";
    this.#end(state);
    this.setAttribute("role", "region");
    const whose = attribution(about);
    this.setAttribute("aria-label", `View ${whose.textContent}`);
    return whose;
  }

  #end(state) {
    clearTimeout(this.#waiting);
    clearInterval(this.#counting);
    this.frame = undefined;
    this.hidden = false;
    this.dataset.state = state;
    this.#root.replaceChildren();
  }

  /** Show in its place why it is gone, and what can be done. */
  showGone(message, stage) {
    const { view, failed, reason, about } = message;
    const whose = this.#begin(message, stage, failed ? "failed" : "closed");
    if (about) whose.append(" ", element("span", { class: "about", text: about }));
    const text = sentence(failed ? `It could not be shown: ${reason}` : reason);
    const acts = {
      [failed ? "Try again" : "Reopen"]: () => stage.notify({ do: "retry", view }),
      [failed ? "Close" : "Dismiss"]: () => stage.notify({ do: "closed", view }),
    };
    this.#root.append(caption(whose), troubleBar(this.shown, text, acts, failed ? "alert" : "group"));
    if (failed) this.#fireProblem("failed", reason);
  }

  #fireProblem(kind, message) {
    const detail = { view: this.view, kind, message };
    this.dispatchEvent(new CustomEvent("problem", { bubbles: true, composed: true, detail }));
  }

  /** Show a sentence in its place, and buttons for what can be done. */
  note(text, acts = {}) {
    this.#end("noted");
    this.toggleAttribute("data-held", false); // it is no longer among those that are released
    const shown = this.getAttribute("view") ?? this.shown;
    this.#root.append(troubleBar(shown, text, acts));
  }

  #button(name, label, act) {
    const attributes = { type: "button", title: label, "aria-label": `${label}: ${this.shown}` };
    const made = element("button", attributes, icon(name));
    made.addEventListener("click", act);
    this.#buttons[name] = made;
    return made;
  }

  disconnectedCallback() {
    clearTimeout(this.#waiting);
    clearInterval(this.#counting);
  }

  get window() {
    return this.frame?.contentWindow;
  }

  /** What the View says of itself, and its resource: marked as such, and cut where there is no room. */
  name({ name, version }) {
    const { uri } = this.#mount;
    const own = `calls itself “${name}” ${version}`.trimEnd();
    this.own.textContent = `${name ? `${own} · ` : ""}${uri}`;
    this.own.title = this.own.textContent;
  }

  /** Whether it stays open, and which tools always run: `[{tool, by, shown}]`. */
  setMarks({ pinned, grants }) {
    if (!this.frame) return;
    this.#pin.hidden = !pinned;
    this.#buttons.key.hidden = grants.length === 0;
    const open = this.#grants?.isConnected && grants.length > 0;
    this.#grants?.remove();
    this.#grants = grantList(this.shown, grants, ({ tool, by }) =>
      this.#stage.notify({ do: "withdraw", view: this.view, tool, by }),
    );
    if (open) this.#toggleGrants();
    else this.#buttons.key.setAttribute("aria-expanded", "false");
  }

  #toggleGrants() {
    const open = !this.#grants.isConnected;
    if (open) this.#root.querySelector(".caption").after(this.#grants);
    else this.#grants.remove();
    this.#buttons.key.setAttribute("aria-expanded", String(open));
    this.#stage.hold(this);
  }

  // --- how it is shown ------------------------------------------------------------------------

  toggle(mode) {
    this.setMode(this.dataset.mode === mode ? "inline" : mode);
  }

  setMode(mode) {
    if (!MODES.includes(mode)) return;
    if (mode !== "inline") this.#stage.makeRoom(this, mode);
    if (this.dataset.mode !== mode) this.#stage.hold(this);
    this.dataset.mode = mode;
    for (const name of ["fullscreen", "pip"]) {
      this.#buttons[name].setAttribute("aria-pressed", String(mode === name));
    }
    this.#stage.rearrange();
    this.sendMode();
  }

  sendMode() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    const mode = this.dataset.mode;
    const size = mode === "inline" ? inlineSize(this.#stage.place) : { width, height };
    this.#stage.notify({ do: "mode", view: this.view, mode, size });
  }

  /** The host lets the View clean up, then removes it. */
  close() {
    this.hidden = true;
    this.#stage.rearrange();
    this.#stage.notify({ do: "closed", view: this.view });
  }

  resize(params) {
    const wanted = Math.min(Math.ceil(Number(params?.height)), MAX_HEIGHT);
    if (!(wanted > 0)) return;
    this.frame.style.height = `${wanted}px`;
    if (Math.abs(wanted - this.#height) < MOVES) return;
    this.#height = wanted;
    this.#stage.hold(this);
  }

  // --- messages -------------------------------------------------------------------------------

  post(message) {
    this.window?.postMessage(message, this.origin);
    this.look();
  }

  /**
   * A loaded sandbox has one frame, the View. It has none when its process has ended or another
   * page has taken its place; a page gets no event of either.
   */
  look() {
    const { frame, window: sandbox } = this;
    if (!sandbox) return;
    if (sandbox.length > 0) this.#filled = true;
    else if (this.#filled) {
      this.#filled = false;
      setTimeout(() => {
        if (this.frame !== frame || sandbox.length > 0) return;
        this.#report({ do: "vanished", reason: "its page crashed or was unloaded" });
      }, EMPTY_FOR);
    }
  }

  receive(data) {
    const method = data?.method;
    if (typeof method === "string") {
      if (method.startsWith(SANDBOX)) {
        if (method === `${SANDBOX}proxy-ready`) this.#load();
        else if (method === `${SANDBOX}view-gone`) {
          this.#report({ do: "vanished", reason: "its page shows something else now" });
        }
        return;
      }
      if (method === "ui/notifications/size-changed") this.resize(data.params);
      else if (method === "ui/notifications/initialized") this.dataset.state = "live";
    }
    let text;
    try {
      text = JSON.stringify(data);
    } catch {
      text = undefined; // a cycle, or nested too deep
    }
    if (text === undefined) this.#refuse(data, "is not JSON");
    else if (isTooLarge(text)) this.#refuse(data, `is larger than ${MAX_MESSAGE} bytes`);
    else this.#stage.send(this.view, text);
  }

  /** Report what cannot be passed on, and answer in its place, so that nobody waits for it. */
  #refuse(data, why) {
    const { id } = data ?? {};
    this.#report({ do: "refused", reason: `A message ${why}` });
    if (data?.method === undefined && (typeof id === "number" || typeof id === "string")) {
      const error = { code: -32603, message: `The View's answer ${why}: it was not passed on` };
      this.#stage.send(this.view, JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
  }

  #report(message) {
    this.#reports += 1;
    if (this.#reports <= MAX_REPORTS) this.#stage.notify({ view: this.view, ...message });
  }

  /** Show that it is busy, or why it does not respond and what can be done; or neither. */
  setTrouble({ reason, busyFor }) {
    if (!this.frame) return;
    this.#countBusy(busyFor);
    this.#trouble?.remove();
    this.toggleAttribute("data-trouble", Boolean(reason));
    if (!reason) return;
    const { view, shown } = this;
    this.#trouble = troubleBar(shown, `It does not respond: ${sentence(reason)}`, {
      Reload: () => this.#stage.notify({ do: "reload", view }),
      Close: () => this.close(),
    });
    this.frame.before(this.#trouble);
    this.#stage.hold(this);
    this.#fireProblem("unresponsive", reason);
  }

  /** Count in the caption for how many seconds it has not answered; null: it does. */
  #countBusy(seconds) {
    clearInterval(this.#counting);
    this.#busy.hidden = seconds === null;
    if (seconds === null) return;
    const since = performance.now() - seconds * 1000;
    const show = () => {
      this.#busy.textContent = `busy for ${Math.round((performance.now() - since) / 1000)} s`;
    };
    show();
    this.#counting = setInterval(show, 1000);
  }

  #load() {
    clearTimeout(this.#waiting);
    this.frame.style.visibility = "";
    this.#loads += 1;
    if (this.#loads > MAX_LOADS) {
      this.#stage.notify({ do: "broken", view: this.view, reason: "it keeps reloading itself" });
      return;
    }
    const { html, allow } = this.#mount;
    this.post({ jsonrpc: "2.0", method: `${SANDBOX}resource-ready`, params: { html, allow } });
  }
}

const caption = (...children) => element("div", { class: "caption", part: "caption" }, ...children);

const sentence = (text) => text.replace(/\.?$/, ".");

/** What is wrong with a View, and buttons for what can be done; `acts` has a function by label. */
function troubleBar(shown, text, acts, role = "alert") {
  const buttons = Object.entries(acts).map(([label, act]) => {
    const made = element("button", { type: "button", text: label, "aria-label": `${label}: ${shown}` });
    made.addEventListener("click", () => {
      for (const button of buttons) button.disabled = true;
      act();
    });
    return made;
  });
  const attributes = { class: "trouble", part: "note", role };
  return element("div", attributes, element("p", { text }), ...buttons);
}

/** The tools that always run, with a button each to be asked again. */
function grantList(shown, grants, withdraw) {
  const rows = grants.map((grant) => {
    const who = grant.by === "view" ? "The View calls its server's " : "The model calls ";
    const label = `Ask again before ${grant.shown}: ${shown}`;
    const button = element("button", { type: "button", text: "Ask again", "aria-label": label });
    button.addEventListener("click", () => {
      button.disabled = true;
      withdraw(grant);
    });
    const text = element("span", {}, who, element("code", { text: grant.shown }));
    return element("li", {}, text, button);
  });
  const about = { class: "grants", part: "grants", role: "region", "aria-label": `Always allowed: ${shown}` };
  return element("div", about, element("p", { text: "You are not asked before" }), element("ul", {}, ...rows));
}

const keyOf = (agent, id) => `${agent.number} ${id}`;

/** All Views on the page, of all agents; two agents may call theirs the same. */
export class Views {
  #views = new Map();
  #windows = new Map();
  #holding = 0;
  #placeOf;

  /** `placeOf(id)` has the element where a View is shown: the page's own, or one that is made. */
  constructor(placeOf) {
    this.#placeOf = placeOf;
    window.addEventListener("message", ({ source, origin, data }) => {
      const view = this.#windows.get(source);
      if (view?.origin === origin) view.receive(data);
    });
    setInterval(() => {
      for (const view of this.#views.values()) view.look();
    }, LOOK_EVERY);
  }

  get(agent, id) {
    return this.#views.get(keyOf(agent, id));
  }

  mount(agent, message) {
    const view = this.#take(agent, message.view);
    view.start(message, this.#around(agent, view));
    this.#windows.set(view.window, view);
    this.#show(view);
    if (view.placed) view.sendMode();
  }

  /** Show that a View is gone, until it is mounted again or dropped. */
  showGone(agent, message) {
    const view = this.#take(agent, message.view);
    view.showGone(message, this.#around(agent, view));
    if (message.failed) this.#show(view);
    else this.#hold();
  }

  /** Load these origins, which answer that the browser should delete its storage for them. */
  clearStorage(origins) {
    for (const origin of origins) {
      const frame = element("iframe", { src: `${origin}${PAGE}`, sandbox: "", hidden: "" });
      frame.addEventListener("load", () => frame.remove());
      document.body.append(frame);
    }
  }

  #take(agent, id) {
    this.drop(agent, id);
    const view = this.#placeOf(id);
    view.agent = agent;
    this.#views.set(keyOf(agent, id), view);
    return view;
  }

  #show(view) {
    this.#hold();
    if (!view.placed) view.scrollIntoView({ block: "nearest" });
  }

  #around(agent, view) {
    return {
      place: view.placed ? view : view.parentElement,
      mark: agent.number ? `${agent.number}:` : "",
      notify: agent.notify,
      send: agent.send,
      makeRoom: this.#makeRoom,
      rearrange: this.#rearrange,
      hold: this.#hold,
    };
  }

  drop(agent, id) {
    const view = this.get(agent, id);
    if (!view) return;
    this.#views.delete(keyOf(agent, id));
    this.#windows.delete(view.window);
    if (view.placed) view.note("");
    else view.remove();
    this.#hold();
    this.#rearrange();
  }

  /** Drop all of one agent's. */
  clear(agent) {
    for (const shown of [...this.#views.values()]) {
      if (shown.agent === agent) this.drop(agent, shown.view);
    }
  }

  /** Mark the View that a question is about, and bring it into sight. Returns its frame, if any. */
  pointAt(agent, id) {
    const view = agent && this.get(agent, id);
    for (const other of this.#views.values()) other.toggleAttribute("data-question", other === view);
    if (!view?.frame) return undefined;
    this.#hold();
    view.scrollIntoView({ block: "nearest" });
    return view.frame;
  }

  /**
   * Views move when one grows, closes or changes its mode. For half a second the others ignore
   * presses, which may have been meant for what was under the pointer before.
   */
  #hold = (mover) => {
    const hold = (moving) => {
      for (const view of this.#views.values()) view.toggleAttribute("data-held", moving && view !== mover);
    };
    hold(true);
    clearTimeout(this.#holding);
    this.#holding = setTimeout(hold, STILL_AFTER, false);
  };

  /** Whether an agent can be reached: the Views of one that cannot are dimmed. */
  reached(agent, there) {
    for (const view of this.#views.values()) {
      if (view.agent === agent) view.toggleAttribute("data-lost", !there);
    }
  }

  /** The page has another size: notify Views that are not inline, or whose place is the page's own. */
  resized() {
    for (const view of this.#views.values()) {
      if (view.frame && (view.placed || view.dataset.mode !== "inline")) view.sendMode();
    }
  }

  /** The View that covers the page, if one does. */
  get fullscreen() {
    return [...this.#views.values()].find((v) => v.dataset.mode === "fullscreen" && !v.hidden);
  }

  #makeRoom = (view, mode) => {
    for (const other of this.#views.values()) {
      if (other !== view && other.dataset.mode === mode) other.setMode("inline");
    }
  };

  /** Make what a View covers unreachable. */
  #rearrange = () => {
    const top = this.fullscreen;
    document.body.toggleAttribute("data-covered", top !== undefined);
    for (const view of this.#views.values()) view.inert = top !== undefined && view !== top;
  };
}
