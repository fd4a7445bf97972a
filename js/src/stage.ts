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

// Why a link ended: `transom.web.stage` has the same texts.
const TAKEN_OVER = "another page took over";
const ENDED = "the program has ended";
const ELSEWHERE = "Everything is shown in another tab or window now.";

const byId = (id: string): HTMLElement => document.getElementById(id)!;

const place = byId("views");
const bar = byId("state");
const banner = byId("banner");
const notice = byId("notice");
const empty = byId("empty");
const nothing = empty.textContent;
const dark = matchMedia("(prefers-color-scheme: dark)");

customElements.define("transom-view", View);

let asked = 0; // questions that are open

/** The tab says which View is in front: its server first, which no View can push out of sight. */
function showTitle(): void {
  const name = views.front?.tabTitle ?? "Transom";
  document.title = asked ? `(${asked}) ${name}` : name;
}

const views = new Views(() => {
  const view = new View();
  place.prepend(view); // the newest comes first
  return view;
}, showTitle);
const questions = new Questions(byId("questions"), {
  onShown: (agent, question) => views.pointAt(agent, question?.view),
  onCount(count) {
    asked = count;
    showTitle();
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
    else if (bar.dataset.state !== now) showBanner(alone);
    bar.dataset.state = now;
    bar.textContent = now === "connected" ? "Connected" : "Not connected";
    if (now === "over") void explainEnd(why);
    else empty.textContent = nothing;
  },
});

// --- the state of the connection ------------------------------------------------------------------

let hoping: ReturnType<typeof setTimeout> | undefined;

function showBanner(alone: boolean): void {
  const who = alone ? "your agent or program" : "one of your agents or programs";
  banner.textContent = `No connection to ${who}. Trying again…`;
  banner.hidden = false;
  hoping = setTimeout(() => {
    const then = alone ? "If you have ended it, you can close this tab. " : "";
    banner.textContent =
      `No connection to ${who} for ${GONE_AFTER / 1000} seconds. ` +
      `${then}If it comes back, so does what it shows here.`;
  }, GONE_AFTER);
}

function hideBanner(): void {
  clearTimeout(hoping);
  banner.hidden = true;
}

async function explainEnd(why = ""): Promise<void> {
  if (why === ENDED) {
    empty.textContent = "Your agent or program has ended. You can close this tab.";
  } else if (why === "unknown") await offerOtherTab();
  else {
    const text = why ? `${why[0]!.toUpperCase()}${why.slice(1)}` : "The connection has ended";
    offer(why === TAKEN_OVER ? ELSEWHERE : `${text}.`, () => location.reload());
  }
}

/** The page was opened at the address alone, or with a token of a program that has ended. */
async function offerOtherTab(): Promise<void> {
  const showHere = await findOther();
  if (showHere) offer(ELSEWHERE, showHere);
  else {
    empty.textContent =
      "This address is not valid any more. Open the one that your agent or program gives you now.";
  }
}

function offer(text: string, showHere: () => void): void {
  const button = element("button", { type: "button", text: "Show it here" });
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

let resizing: ReturnType<typeof setTimeout> | undefined;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => {
    sendSurroundings();
    views.onResized();
  }, RESIZED_AFTER);
});
dark.addEventListener("change", sendSurroundings);

// --- start ----------------------------------------------------------------------------------------

const own = agents.start(socketUrl(location.href), takeToken());
letOthersIn(() => own.state === "connected");

const { link } = own;
export { link, Link };
