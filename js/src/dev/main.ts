/** The page of `transom dev`. */
import { takeToken } from "../tabs.js";
import { element, Questions, socketUrl, View, Views } from "../views_bundle.js";
import { readPlace, writePlace, type Place } from "./deep_link.js";
import { Audit, Contexts } from "./context.js";
import { showBlank } from "./diagnosis.js";
import { Findings } from "./findings.js";
import { DevHost } from "./host.js";
import { showOutput } from "./output.js";
import { byId, notes, plural } from "./parts.js";
import { showCall } from "./result.js";
import { connectSettings } from "./settings.js";
import { HostControls } from "./surroundings.js";
import { TabList } from "./tab_list.js";
import { Tools, type ShownCall } from "./tools.js";
import { Traffic } from "./traffic.js";
import { ViewTools } from "./view_tools.js";

/** The server that is developed, as the session shows it. */
interface ServerState {
  state: "starting" | "running" | "failed" | "lost";
  reason?: string;
  output?: string;
  changed?: string[];
  ms?: number;
  /** Whether one that failed is started again by itself. */
  retried?: boolean;
}

const ENDED = "transom dev has ended. Start it again, and this page continues at its new address.";
const UNKNOWN = "This address is not valid any more. Open the one that transom dev prints now.";
const AWAY = "No connection to transom dev. Trying again…";

const token = takeToken();
let place: Place = readPlace(location.hash);
const wanted = place; // what the link asked for, until it is shown

function keepPlace(changes: Place): void {
  place = { ...place, ...changes };
  history.replaceState(null, "", writePlace(place) || location.pathname);
}

customElements.define("transom-view", View);

const stage = byId("views");
const views = new Views(() => {
  const view = new View();
  view.isForAuthor = true;
  stage.prepend(view); // while a new one opens, the old one may still be there
  return view;
});
const questions = new Questions(byId("questions"), {
  onShown: (agent, question) => views.pointAt(agent, question?.view),
});
const host = new DevHost(
  { url: socketUrl(location.href), token },
  {
    views,
    questions,
    onState(state, why) {
      const banner = byId("banner");
      banner.hidden = state === "connected" || state === "connecting";
      if (state === "reconnecting") banner.textContent = AWAY;
      if (state === "over") banner.textContent = why === "unknown" ? UNKNOWN : ENDED;
      if (state === "connected") controls.send();
    },
    onNotice(text) {
      byId("notice").textContent = text;
      byId("notice").hidden = !text;
    },
  },
);
const controls = new HostControls(host, views, keepPlace);
const panels = Object.fromEntries(
  ["result", "traffic", "findings", "output", "context", "audit"].map((name) => [name, byId(name)]),
);
const tabs = new TabList(byId("tabs"), panels, (tab) => keepPlace({ tab }));
const tools = new Tools(
  host,
  { list: byId("tool-list"), form: byId("tool-form") },
  (tool, args) => keepPlace({ tool, args }),
  () => tabs.choose("result"),
);

new ViewTools(host, byId("view-panel"));
const traffic = new Traffic(host, byId("traffic"), (bad) => tabs.setCount("traffic", bad, true));
const empty = byId("empty").textContent;
host.onPanel("view", (view: { state: string; reason: string } | null) => {
  const failed = view?.state === "failed";
  byId("empty").textContent = failed ? `The View did not open: ${view.reason}.` : empty;
});
showBlank(host, () => tabs.choose("findings"));
showOutput(host, byId("output"));
new Findings(
  host,
  byId("findings"),
  (count) => tabs.setCount("findings", count, true),
  (at, view, words) => {
    tabs.choose("traffic");
    traffic.reveal(at, view, words);
  },
);
new Contexts(host, byId("context"));
new Audit(host, byId("audit"));
connectSettings(host, (container) => controls.setContainer(container));

// --- the server -----------------------------------------------------------------------------------

const WORDS = { starting: "Starting…", running: "Running", failed: "Failed", lost: "Ended" };

host.onPanel("target", ({ name, shown }: { name: string; shown: string }) => {
  byId("target").textContent = shown;
  document.title = `${name} – transom dev`;
});
host.onPanel("server", (server: ServerState) => {
  const { state, reason = "", output = "", ms, changed = [], retried } = server;
  const status = byId("server");
  status.dataset.state = state;
  const about = changed.length > 0 ? ` (${changed.join(", ")})` : "";
  status.textContent = `${WORDS[state]}${about}${ms === undefined ? "" : `, up in ${(ms / 1000).toFixed(1)} s`}`;
  const failure = byId("failure");
  if (state === "starting") return; // what is wrong stays in sight until it is mended
  failure.hidden = state === "running";
  if (failure.hidden) return;
  const byItself = state === "lost" || retried === true;
  const again = byItself
    ? "It is tried again by itself."
    : "It is started again when you save a file, or press Restart.";
  failure.replaceChildren(
    element("h2", { text: state === "failed" ? "The server does not start" : "The server ended" }),
    element("p", { text: reason.charAt(0).toUpperCase() + reason.slice(1) }),
    ...(output
      ? [element("pre", { tabindex: "0", "aria-label": "Its output", text: output })]
      : []),
    ...notes(again),
  );
});
host.onPanel("dropped", (dropped: Record<string, number>) => {
  for (const [name, count] of Object.entries(dropped)) {
    const panel = byId(name === "messages" ? "context" : name);
    let note = panel.querySelector<HTMLElement>(":scope > .dropped");
    if (!note) panel.prepend((note = element("p", { class: "note dropped" })));
    note.textContent = `${plural(count, "message")} not shown: too many came at once.`;
  }
});
host.onPanel("call", (call: ShownCall) => showCall(byId("result"), call));
byId("restart").addEventListener("click", () => void host.request("restart"));

// --- links and keys -------------------------------------------------------------------------------

/** Show what the link asks for. It calls nothing: anyone can make a link. */
function followLink(): void {
  const { tool, args, tab } = wanted;
  controls.restore(wanted);
  if (tab) tabs.choose(tab);
  if (tool) tools.choose(tool, args);
}

addEventListener("hashchange", () => {
  place = readPlace(location.hash);
  if (place.tool) tools.choose(place.tool, place.args);
  if (place.tab) tabs.choose(place.tab);
  controls.restore(place);
});
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    tools.call();
  }
});

let isFollowed = false;
host.onPanel("tools", () => {
  if (isFollowed) return;
  isFollowed = true;
  followLink();
});
