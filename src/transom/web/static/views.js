/**
 * Views on the Stage, each in a sandbox on an origin of its own. None is trusted: a View is told
 * apart by its window and origin, and can speak for itself only. Everything shown about one is set
 * as text.
 */
const SANDBOX = "ui/notifications/sandbox-";
const MODES = ["inline", "fullscreen", "pip"];
const FLAGS = "allow-scripts allow-same-origin allow-forms";
const MAX_MESSAGE = 16 * 1024 * 1024; // bytes, as the host takes
const MAX_HEIGHT = 6000;
const MAX_LOADS = 10;
const PAGE = "/transom-view"; // `transom.web.asgi` knows it
const SANDBOX_WITHIN = 30_000;

const ICONS = {
  fullscreen: "M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",
  pip: "M3 4h14v12H3zM11 10h4v4h-4z",
  close: "M5 5l10 10M15 5L5 15",
};

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

class View extends HTMLElement {
  #mount;
  #stage;
  #loads = 0;
  #waiting = 0;
  #buttons = {};

  /** Show what an agent mounts; `stage` has `tell(message)`, `send(view, text)`, `place`. */
  start(mount, stage) {
    this.#mount = mount;
    this.#stage = stage;
    const { view, shown = view, client, origin, server, uri, allow, border } = mount;
    this.id = `view-${stage.mark}${view}`;
    this.view = view;
    this.shown = shown;
    this.origin = origin;
    this.dataset.mode = "inline";
    this.dataset.state = "loading";
    if (!border) this.dataset.border = "none";
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", `View ${shown}`);
    this.label = element("span", { class: "name", text: shown });
    const from = element("span", {
      class: "from",
      text: `${client ? `for ${client} · ` : ""}from ${server} · ${uri}`,
      title: uri,
    });
    const buttons = element(
      "span",
      { class: "buttons" },
      this.#button("fullscreen", "Full screen", () => this.toggle("fullscreen")),
      this.#button("pip", "Picture in the corner", () => this.toggle("pip")),
      this.#button("close", "Close", () => this.close()),
    );
    this.frame = element("iframe", { sandbox: FLAGS, title: `View ${shown}`, src: `${origin}${PAGE}` });
    if (allow) this.frame.setAttribute("allow", allow);
    this.append(element("div", { class: "caption" }, this.label, from, buttons), this.frame);
    this.#waiting = setTimeout(() => {
      const reason = `${origin} did not load in the browser`;
      this.#stage.tell({ do: "broken", view, reason });
    }, SANDBOX_WITHIN);
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
  }

  get window() {
    return this.frame.contentWindow;
  }

  name({ name, version }) {
    this.label.textContent = name || this.shown;
    if (version) this.label.append(" ", element("span", { class: "version", text: version }));
    this.setAttribute("aria-label", `View ${this.shown}, ${name}`);
  }

  // --- how it is shown ------------------------------------------------------------------------

  toggle(mode) {
    this.setMode(this.dataset.mode === mode ? "inline" : mode);
  }

  setMode(mode) {
    if (!MODES.includes(mode)) return;
    if (mode !== "inline") this.#stage.makeRoom(this, mode);
    this.dataset.mode = mode;
    for (const name of ["fullscreen", "pip"]) {
      this.#buttons[name].setAttribute("aria-pressed", String(mode === name));
    }
    this.#stage.rearrange();
    this.tellMode();
  }

  tellMode() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    const mode = this.dataset.mode;
    const size = mode === "inline" ? inlineSize(this.#stage.place) : { width, height };
    this.#stage.tell({ do: "mode", view: this.view, mode, size });
  }

  /** The host lets the View wind up, then takes it off. */
  close() {
    this.hidden = true;
    this.#stage.rearrange();
    this.#stage.tell({ do: "closed", view: this.view });
  }

  resize(params) {
    const height = Number(params?.height);
    if (height > 0) this.frame.style.height = `${Math.min(Math.ceil(height), MAX_HEIGHT)}px`;
  }

  // --- messages -------------------------------------------------------------------------------

  post(message) {
    this.window?.postMessage(message, this.origin);
  }

  heard(data) {
    const method = data?.method;
    if (typeof method === "string") {
      if (method.startsWith(SANDBOX)) {
        if (method === `${SANDBOX}proxy-ready`) this.#load();
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

  /** What cannot be passed on is told, and answered for, so that nobody waits for it. */
  #refuse(data, why) {
    const { id } = data ?? {};
    this.#stage.tell({ do: "refused", view: this.view, reason: `A message ${why}` });
    if (data?.method === undefined && (typeof id === "number" || typeof id === "string")) {
      const error = { code: -32603, message: `The View's answer ${why}: it was not passed on` };
      this.#stage.send(this.view, JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
  }

  #load() {
    clearTimeout(this.#waiting);
    this.#loads += 1;
    if (this.#loads > MAX_LOADS) {
      this.#stage.tell({ do: "broken", view: this.view, reason: "it keeps loading itself anew" });
      return;
    }
    const { html, allow } = this.#mount;
    this.post({ jsonrpc: "2.0", method: `${SANDBOX}resource-ready`, params: { html, allow } });
  }
}

customElements.define("transom-view", View);

const keyOf = (agent, id) => `${agent.number} ${id}`;

/** All Views on the page, of all agents; two agents may call theirs the same. */
export class Views {
  #views = new Map();
  #windows = new Map();
  #place;

  constructor(place) {
    this.#place = place;
    window.addEventListener("message", ({ source, origin, data }) => {
      const view = this.#windows.get(source);
      if (view?.origin === origin) view.heard(data);
    });
  }

  get(agent, id) {
    return this.#views.get(keyOf(agent, id));
  }

  mount(agent, message) {
    this.drop(agent, message.view);
    const view = document.createElement("transom-view");
    view.agent = agent;
    view.start(message, {
      place: this.#place,
      mark: agent.number ? `${agent.number}:` : "",
      tell: agent.tell,
      send: agent.send,
      makeRoom: this.#makeRoom,
      rearrange: this.#rearrange,
    });
    this.#views.set(keyOf(agent, message.view), view);
    this.#place.append(view);
    this.#windows.set(view.window, view);
    view.scrollIntoView({ block: "nearest" });
  }

  drop(agent, id) {
    const view = this.get(agent, id);
    if (!view) return;
    this.#views.delete(keyOf(agent, id));
    this.#windows.delete(view.window);
    view.remove();
    this.#rearrange();
  }

  /** Drop all of one agent's. */
  clear(agent) {
    for (const view of [...this.#views.values()]) {
      if (view.agent === agent) this.drop(agent, view.view);
    }
  }

  /** The page has another size: tell those that do not stand among the others. */
  resized() {
    for (const view of this.#views.values()) {
      if (view.dataset.mode !== "inline") view.tellMode();
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

  /** What a View covers cannot be reached. */
  #rearrange = () => {
    const top = this.fullscreen;
    document.body.toggleAttribute("data-covered", top !== undefined);
    for (const view of this.#views.values()) view.inert = top !== undefined && view !== top;
  };
}
