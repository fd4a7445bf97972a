/** The Stage: a page that shows Views, asks the user, and passes messages to the host. */
import { surroundings } from "./agent.js";
import { Agents } from "./agents.js";
import { Link } from "./link.js";
import { Questions } from "./questions.js";
import { findOther, letOthersIn, takeToken } from "./tabs.js";
import { element, inlineSize, View, Views } from "./views.js";

const GONE_AFTER = 30_000; // milliseconds without an agent until the banner says more

const place = document.getElementById("views");
const bar = document.getElementById("state");
const banner = document.getElementById("banner");
const notice = document.getElementById("notice");
const empty = document.getElementById("empty");
const nothing = empty.textContent;
const dark = matchMedia("(prefers-color-scheme: dark)");

customElements.define("transom-view", View);

const views = new Views(() => place.appendChild(document.createElement("transom-view")));
const questions = new Questions(
  document.getElementById("questions"),
  (agent, question) => views.pointAt(agent, question?.view),
  (asked) => {
    document.title = asked ? `(${asked}) Transom` : "Transom";
  },
);
const agents = new Agents({
  views,
  questions,
  onConnected: (agent) => agent.notify(known()),
  onNotice(text) {
    notice.textContent = text;
    notice.hidden = !text;
  },
  onState(now, alone, why) {
    if (now !== "reconnecting") hideBanner();
    else if (bar.dataset.state !== now) showBanner(alone ? "the agent" : "an agent");
    bar.dataset.state = now;
    bar.textContent = now === "connected" ? "Connected" : "Not connected";
    if (now === "over") explainEnd(why);
    else empty.textContent = nothing;
  },
});

// --- the state of the connection --------------------------------------------------------------

let hoping = 0;

function showBanner(who) {
  banner.textContent = `No connection to ${who}. Trying again…`;
  banner.hidden = false;
  hoping = setTimeout(() => {
    banner.textContent =
      `No connection to ${who} for ${GONE_AFTER / 1000} seconds. If it has ended, you can close this ` +
      "page. If it comes back, its Views do, too.";
  }, GONE_AFTER);
}

function hideBanner() {
  clearTimeout(hoping);
  banner.hidden = true;
}

async function explainEnd(why) {
  if (why === "the agent has ended") empty.textContent = "The agent has ended. You can close this page.";
  else if (why === "unknown") await offerOtherTab();
  else {
    const text = why ? `${why[0].toUpperCase()}${why.slice(1)}` : "The agent has hung up";
    offer(`${text}.`, () => location.reload());
  }
}

/** The page was opened at the address alone, or with a token of an agent that has ended. */
async function offerOtherTab() {
  const showHere = await findOther();
  if (showHere) offer("The Views are shown in another tab of this browser.", showHere);
  else empty.textContent = "The agent does not know this page. Open the address that it gives you now.";
}

function offer(text, showHere) {
  const button = element("button", { type: "button", text: "Show them here" });
  button.addEventListener("click", showHere, { once: true });
  empty.replaceChildren(text, " ", button);
}

// --- surroundings -----------------------------------------------------------------------------

const known = () =>
  surroundings({
    theme: dark.matches ? "dark" : "light",
    containerDimensions: inlineSize(place),
  });

function sendSurroundings() {
  for (const agent of agents) agent.notify(known());
}

function hurry() {
  for (const agent of agents) agent.link.hurry();
}

let resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    sendSurroundings();
    views.resized();
  }, 150);
});
dark.addEventListener("change", sendSurroundings);

addEventListener("keydown", ({ key }) => {
  if (key === "Escape") views.fullscreen?.setMode("inline");
});
addEventListener("pagehide", () => {
  for (const agent of agents) agent.link.leave();
});
addEventListener("online", hurry);
document.addEventListener("visibilitychange", hurry);

// --- start ------------------------------------------------------------------------------------

const own = agents.start(new URL("socket", location.href).href.replace("http", "ws"), takeToken());
letOthersIn(() => own.state === "connected");

const { link } = own;
export { link, Link, views };
