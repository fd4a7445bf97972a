/** The Stage: a page that shows Views, asks the user, and passes messages to the host. */
import { CONTROL, Link } from "./link.js";
import { Questions } from "./questions.js";
import { element, inlineSize, Views } from "./views.js";

const place = document.getElementById("views");
const state = document.getElementById("state");
const empty = document.getElementById("empty");
const dark = matchMedia("(prefers-color-scheme: dark)");

const tell = (message) => link.send(CONTROL, JSON.stringify(message));
const views = new Views({ place, tell, send: (view, text) => link.send(view, text) });
const questions = new Questions(document.getElementById("questions"), (question, value) => {
  tell({ do: "answer", id: question.id, value });
  // Here and now, in the user's click: a browser opens no window otherwise.
  if (question.kind === "link" && value) window.open(question.url, "_blank", "noopener,noreferrer");
});

// --- the host ---------------------------------------------------------------------------------

const onControl = {
  mount: (message) => views.mount(message),
  unmount: ({ view }) => views.drop(view),
  named: (message) => views.get(message.view)?.name(message),
  mode: ({ view, mode }) => views.get(view)?.setMode(mode),
  ask: (question) => questions.ask(question),
  unask: ({ id }) => questions.withdraw(id),
  download: ({ name, mime, data }) => save(name, mime, data),
};

function save(name, mime, data) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: mime }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const on = {
  frame(view, text) {
    const message = JSON.parse(text);
    if (view === CONTROL) onControl[message.do]?.(message);
    else views.get(view)?.post(message);
  },
  state(now, why) {
    state.dataset.state = now;
    if (now === "connected") {
      state.textContent = "Connected";
      tellSurroundings();
    } else if (now === "reconnecting") {
      state.textContent = "Connection lost, trying again…";
    } else {
      views.clear();
      questions.clear();
      state.textContent = "Not connected";
      empty.textContent = whyOver(why);
    }
  },
  fresh() {
    views.clear();
    questions.clear();
  },
  flood(view) {
    views.drop(view);
    tell({ do: "broken", view, reason: "it sends more than the host takes" });
  },
};

function whyOver(why) {
  if (why === "unknown") {
    return "The agent does not know this page. Open the address that it gives you now.";
  }
  if (why === "the agent has ended") return "The agent has ended. You can close this page.";
  const said = why ? `${why[0].toUpperCase()}${why.slice(1)}` : "The agent has hung up";
  return `${said}. You can close this page, or reload it to show Views here.`;
}

// --- surroundings -----------------------------------------------------------------------------

function tellSurroundings() {
  tell({
    do: "surroundings",
    value: {
      theme: dark.matches ? "dark" : "light",
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      userAgent: "transom",
      platform: "web",
      deviceCapabilities: {
        touch: navigator.maxTouchPoints > 0,
        hover: matchMedia("(hover: hover)").matches,
      },
      containerDimensions: inlineSize(place),
    },
  });
}

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    tellSurroundings();
    views.resized();
  }, 150);
});
dark.addEventListener("change", tellSurroundings);

addEventListener("keydown", ({ key }) => {
  if (key === "Escape") views.fullscreen?.setMode("inline");
});
addEventListener("pagehide", () => link.leave());
addEventListener("online", () => link.hurry());
document.addEventListener("visibilitychange", () => link.hurry());

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
  url: new URL("socket", location.href).href.replace("http", "ws"),
  token: takeToken(),
  on,
});

export { link, views };
