/** The Stage: a page that shows Views, asks the user, and passes messages to the host. */
import { Agents } from "./agents.js";
import { Questions } from "./questions.js";
import { inlineSize, Views } from "./views.js";

const place = document.getElementById("views");
const bar = document.getElementById("state");
const empty = document.getElementById("empty");
const nothing = empty.textContent;
const dark = matchMedia("(prefers-color-scheme: dark)");

const views = new Views(place);
const questions = new Questions(document.getElementById("questions"), (agent, question) =>
  views.pointAt(agent, question?.view),
);
const agents = new Agents({
  views,
  questions,
  onConnected: (agent) => agent.tell(surroundings()),
  onState(now, alone, why) {
    bar.dataset.state = now;
    empty.textContent = now === "over" ? whyOver(why) : nothing;
    if (now === "connected") bar.textContent = "Connected";
    else if (now === "over") bar.textContent = "Not connected";
    else bar.textContent = `${alone ? "Connection" : "An agent's connection"} lost, trying again…`;
  },
});

function whyOver(why) {
  if (why === "unknown") {
    return "The agent does not know this page. Open the address that it gives you now.";
  }
  if (why === "the agent has ended") return "The agent has ended. You can close this page.";
  const said = why ? `${why[0].toUpperCase()}${why.slice(1)}` : "The agent has hung up";
  return `${said}. You can close this page, or reload it to show Views here.`;
}

// --- surroundings -----------------------------------------------------------------------------

const surroundings = () => ({
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

function tellSurroundings() {
  for (const agent of agents) agent.tell(surroundings());
}

function hurry() {
  for (const agent of agents) agent.link.hurry();
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
addEventListener("pagehide", () => {
  for (const agent of agents) agent.link.leave();
});
addEventListener("online", hurry);
document.addEventListener("visibilitychange", hurry);

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

const { link } = agents.begin(
  new URL("socket", location.href).href.replace("http", "ws"),
  takeToken(),
);

export { link, views };
