/**
 * The Stage: a page that shows Views and passes their messages to the host. It trusts no View: each
 * is in a sandbox on its own origin, is told apart by its window and origin, and can speak for
 * itself only. Everything shown about a View is set as text.
 */
import { CONTROL, Link } from "./link.js";

const SANDBOX = "ui/notifications/sandbox-";
const MODES = ["inline", "fullscreen", "pip"];
const MAX_MESSAGE = 16 * 1024 * 1024;
const MAX_HEIGHT = 6000;

const views = new Map();
const questions = new Map();
const main = document.getElementById("views");
const asked = document.getElementById("questions");
const state = document.getElementById("state");

function element(tag, { text, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

// --- Views ------------------------------------------------------------------------------------

class View extends HTMLElement {
  static make(mount) {
    const view = document.createElement("transom-view");
    view.start(mount);
    return view;
  }

  start({ view, origin, server, uri, html, allow, border }) {
    this.id = `view-${view}`;
    this.view = view;
    this.origin = origin;
    this.html = html;
    this.allow = allow;
    this.dataset.mode = "inline";
    if (border === false) this.dataset.border = "none";
    this.label = element("span", { class: "name", text: view });
    const from = element("span", { class: "from", text: `from ${server} · ${uri}` });
    const button = (text, label, act) => {
      const made = element("button", { type: "button", text, "aria-label": `${label} ${view}` });
      made.title = label;
      made.addEventListener("click", act);
      return made;
    };
    const buttons = element(
      "span",
      { class: "buttons" },
      button("⤢", "Full screen", () => this.toggle("fullscreen")),
      button("◲", "Picture in the corner", () => this.toggle("pip")),
      button("✕", "Close", () => this.closeByUser()),
    );
    this.frame = element("iframe", {
      sandbox: "allow-scripts allow-same-origin allow-forms",
      title: `View ${view}`,
      src: `${origin}/`,
    });
    if (allow) this.frame.setAttribute("allow", allow);
    this.append(element("div", { class: "caption" }, this.label, from, buttons), this.frame);
    this.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && this.dataset.mode !== "inline") this.toggle(this.dataset.mode);
    });
  }

  get window() {
    return this.frame.contentWindow;
  }

  toggle(mode) {
    const next = this.dataset.mode === mode ? "inline" : mode;
    this.setMode(next);
    tell({ do: "mode", view: this.view, mode: next });
  }

  setMode(mode) {
    if (MODES.includes(mode)) this.dataset.mode = mode;
  }

  closeByUser() {
    tell({ do: "closed", view: this.view });
    drop(this.view);
  }

  post(message) {
    this.window?.postMessage(message, this.origin);
  }

  heard(data) {
    const method = typeof data?.method === "string" ? data.method : "";
    if (method.startsWith(SANDBOX)) {
      if (method === `${SANDBOX}proxy-ready`) {
        const params = { html: this.html, allow: this.allow };
        this.post({ jsonrpc: "2.0", method: `${SANDBOX}resource-ready`, params });
      }
      return;
    }
    if (method === "ui/notifications/size-changed") this.resize(data.params);
    let text;
    try {
      text = JSON.stringify(data);
    } catch {
      return; // what is not JSON is not for the host
    }
    if (typeof text === "string" && text.length <= MAX_MESSAGE) link.send(this.view, text);
  }

  resize(params) {
    const height = Number(params?.height);
    if (height > 0) this.frame.style.height = `${Math.min(Math.ceil(height), MAX_HEIGHT)}px`;
  }
}

customElements.define("transom-view", View);

function drop(id) {
  const view = views.get(id);
  views.delete(id);
  view?.remove();
}

window.addEventListener("message", ({ source, origin, data }) => {
  for (const view of views.values()) {
    if (source === view.window) {
      if (origin === view.origin) view.heard(data);
      return;
    }
  }
});

// --- the host ---------------------------------------------------------------------------------

const onControl = {
  mount(message) {
    drop(message.view);
    const view = View.make(message);
    views.set(message.view, view);
    main.append(view);
    view.scrollIntoView({ block: "nearest" });
  },
  unmount: ({ view }) => drop(view),
  named({ view, name, version }) {
    const found = views.get(view);
    if (found) found.label.textContent = `${name} ${version}`;
  },
  mode: ({ view, mode }) => views.get(view)?.setMode(mode),
  ask: (question) => ask(question),
  unask: ({ id }) => questions.get(id)?.remove(),
  download: ({ name, mime, data }) => save(name, mime, data),
  open: ({ url }) => window.open(url, "_blank", "noopener,noreferrer"),
};

function tell(message) {
  link.send(CONTROL, JSON.stringify(message));
}

function onFrame(view, text) {
  const message = JSON.parse(text);
  if (view === CONTROL) onControl[message.do]?.(message);
  else views.get(view)?.post(message);
}

function onState(now, why) {
  state.dataset.state = now;
  const words = {
    connected: "Connected",
    reconnecting: "The host does not answer. Trying again…",
    over: `${why ?? ""} Ask the agent to open the View again, or reload this page.`,
  };
  state.textContent = words[now];
  if (now === "connected") tell({ do: "surroundings", value: surroundings() });
  if (now === "over") for (const id of [...views.keys()]) drop(id);
}

function surroundings() {
  return {
    theme: dark.matches ? "dark" : "light",
    locale: navigator.language,
    timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    userAgent: "transom",
    platform: "web",
    deviceCapabilities: {
      touch: navigator.maxTouchPoints > 0,
      hover: matchMedia("(hover: hover)").matches,
    },
    containerDimensions: { width: main.clientWidth, maxHeight: MAX_HEIGHT },
  };
}

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.addEventListener("change", () => tell({ do: "surroundings", value: surroundings() }));

// --- questions --------------------------------------------------------------------------------

const KINDS = {
  approve: {
    title: ({ tool }) => `Let the model call ${tool}?`,
    say: ({ view, server }) => `A tool of the View ${view}, from the server ${server}.`,
    show: ({ arguments: given }) => JSON.stringify(given, null, 2),
    answers: [["Allow", "allow"], ["Always", "always"], ["Refuse", "deny"]],
  },
  link: {
    title: () => "Open this link?",
    say: ({ view }) => `The View ${view} wants to open:`,
    show: ({ url }) => url,
    answers: [["Open", true], ["Refuse", false]],
  },
  download: {
    title: () => "Save this file?",
    say: ({ view }) => `The View ${view} wants to save:`,
    show: ({ name }) => name,
    answers: [["Save", true], ["Refuse", false]],
  },
};

function ask(question) {
  const kind = KINDS[question.kind];
  if (!kind) return;
  const buttons = kind.answers.map(([text, value], index) => {
    const button = element("button", { type: "button", text, class: index ? "" : "main" });
    button.addEventListener("click", () => answer(value));
    return button;
  });
  const card = element(
    "section",
    { class: "question", role: "alertdialog", "aria-label": kind.title(question) },
    element("h2", { text: kind.title(question) }),
    element("p", { text: kind.say(question) }),
    element("pre", { text: kind.show(question) }),
    element("div", { class: "buttons" }, ...buttons),
  );
  function answer(value) {
    card.remove();
    questions.delete(question.id);
    tell({ do: "answer", id: question.id, value });
    if (question.kind === "link" && value === true) onControl.open(question);
  }
  questions.set(question.id, card);
  asked.append(card);
  buttons.at(-1).focus();
}

function save(name, mime, data) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// --- begin ------------------------------------------------------------------------------------

/** The token comes in the fragment, which no server or View ever sees, and leaves it at once. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("transom-token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem("transom-token") ?? "";
}

const link = new Link({
  url: `${location.origin.replace("http", "ws")}/socket`,
  token: takeToken(),
  onFrame,
  onState,
});

export { link, views };
