/** The Stage: a page that shows Views, asks the user, and passes messages to the host. */
import { Agents } from "./agents.js";
import type { PageMessage } from "./messages.js";
import { findOther, letOthersIn, takeToken } from "./tabs.js";
import {
  element,
  inlineSize,
  Link,
  Questions,
  socketUrl,
  surroundings,
  View,
  Views,
} from "./views_bundle.js";

const GONE_AFTER = 30_000; // milliseconds without an agent until the banner says more
const RESIZED_AFTER = 150; // milliseconds without another size

const byId = (id: string): HTMLElement => document.getElementById(id)!;

const place = byId("views");
const bar = byId("state");
const banner = byId("banner");
const notice = byId("notice");
const empty = byId("empty");
const nothing = empty.textContent;
const dark = matchMedia("(prefers-color-scheme: dark)");

customElements.define("transom-view", View);

const views = new Views(() => place.appendChild(new View()));
const questions = new Questions(byId("questions"), {
  onShown: (agent, question) => views.pointAt(agent, question?.view),
  onCount(asked) {
    document.title = asked ? `(${asked}) Transom` : "Transom";
  },
});
const agents = new Agents({
  views,
  questions,
  onConnected(agent) {
    agent.notify(known());
  },
  onNotice(text) {
    notice.textContent = text;
    notice.hidden = !text;
  },
  onState(now, alone, why) {
    if (now !== "reconnecting") hideBanner();
    else if (bar.dataset.state !== now) showBanner(alone ? "the agent" : "an agent");
    bar.dataset.state = now;
    bar.textContent = now === "connected" ? "Connected" : "Not connected";
    if (now === "over") void explainEnd(why);
    else empty.textContent = nothing;
  },
});

// --- the state of the connection ------------------------------------------------------------------

let hoping: ReturnType<typeof setTimeout> | undefined;

function showBanner(who: string): void {
  banner.textContent = `No connection to ${who}. Trying again…`;
  banner.hidden = false;
  hoping = setTimeout(() => {
    banner.textContent =
      `No connection to ${who} for ${GONE_AFTER / 1000} seconds. If it has ended, you can close this ` +
      "page. If it comes back, its Views do, too.";
  }, GONE_AFTER);
}

function hideBanner(): void {
  clearTimeout(hoping);
  banner.hidden = true;
}

async function explainEnd(why = ""): Promise<void> {
  if (why === "the agent has ended") {
    empty.textContent = "The agent has ended. You can close this page.";
  } else if (why === "unknown") await offerOtherTab();
  else {
    const text = why ? `${why[0]!.toUpperCase()}${why.slice(1)}` : "The agent has hung up";
    offer(`${text}.`, () => {
      location.reload();
    });
  }
}

/** The page was opened at the address alone, or with a token of an agent that has ended. */
async function offerOtherTab(): Promise<void> {
  const showHere = await findOther();
  if (showHere) offer("The Views are shown in another tab of this browser.", showHere);
  else {
    empty.textContent =
      "The agent does not know this page. Open the address that it gives you now.";
  }
}

function offer(text: string, showHere: () => void): void {
  const button = element("button", { type: "button", text: "Show them here" });
  button.addEventListener("click", showHere, { once: true });
  empty.replaceChildren(text, " ", button);
}

// --- surroundings ---------------------------------------------------------------------------------

const known = (): PageMessage =>
  surroundings({
    theme: dark.matches ? "dark" : "light",
    containerDimensions: inlineSize(place),
  });

function sendSurroundings(): void {
  for (const agent of agents) agent.notify(known());
}

function hurry(): void {
  for (const agent of agents) agent.link.hurry();
}

let resizing: ReturnType<typeof setTimeout> | undefined;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    sendSurroundings();
    views.onResized();
  }, RESIZED_AFTER);
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

// --- start ----------------------------------------------------------------------------------------

const own = agents.start(socketUrl(location.href), takeToken());
letOthersIn(() => own.state === "connected");

const { link } = own;
export { link, Link };
