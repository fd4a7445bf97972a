/** What is shown around a View: whose it is, what is wrong with it, what the user always allows it. */
import { element, type Nodes } from "./dom.js";
import type { GrantedTool, OfferedTool, ViewLabel } from "./messages.js";

/** What the user can do, by the label of its button. */
export type Acts = Record<string, () => void>;

const QUOTES = /["“”„‟«»‹›「」『』〝〞〟＂]/gu;

/**
 * What a View calls itself, between quotation marks that are the host's: it can neither close them nor
 * make them disappear. Only what is between them is cut where there is no room.
 */
export function ownWords(words: string): HTMLElement {
  const inside = element("span", { class: "words", text: words.replace(QUOTES, "'") });
  return element("span", { class: "own", part: "own", title: words }, "“", inside, "”");
}

/**
 * The label of a View, or of a server that asks: what the View calls itself, in quotation marks, then the
 * host's own words, whose it is. These are never cut off or covered, and look different.
 */
export function attribution({
  view,
  shown = view,
  title = "",
  server,
  client,
}: ViewLabel): HTMLElement {
  const from: Nodes = [element("b", { text: server })];
  if (client) from.push(" for ", element("b", { text: client }));
  const whose = element("span", { class: "whose", part: "whose" });
  if (title) whose.append("from ", ...from);
  else if (shown) whose.append(element("b", { text: shown }), " from ", ...from);
  else whose.append("Server ", ...from);
  return element("span", { class: "label" }, ...(title ? [ownWords(title), " "] : []), whose);
}

export const caption = (...children: Nodes): HTMLElement =>
  element("div", { class: "caption", part: "caption" }, ...children);

/** What a View is to its host, and which tools it has: for who wants to know. */
export function viewFacts(
  label: string,
  facts: Record<string, string>,
  tools: OfferedTool[],
): HTMLElement {
  const rows = Object.entries(facts).flatMap(([name, value]) =>
    value ? [element("dt", { text: name }), element("dd", { text: value })] : [],
  );
  const offered = tools.map(({ name, about, disabled }) => {
    const parts: Nodes = [element("code", { text: name })];
    if (disabled) parts.push(element("span", { class: "off", text: "disabled" }));
    if (about) parts.push(element("span", { class: "words", text: about }));
    return element("li", disabled ? { class: "disabled" } : {}, ...parts);
  });
  const count = tools.filter(({ disabled }) => !disabled).length;
  const title = tools.length
    ? `${count} ${count === 1 ? "tool" : "tools"} for the model`
    : "No tools for the model";
  return element(
    "div",
    { class: "facts", part: "facts", role: "region", "aria-label": `About ${label}` },
    element("dl", {}, ...rows),
    element("p", { text: title }),
    ...(tools.length ? [element("ul", {}, ...offered)] : []),
  );
}

export const sentence = (text: string): string => text.replace(/\.?$/, ".");

/** A text for authors, with what is between backticks in the letters of code. */
const marked = (text: string): Nodes =>
  text.split("`").map((part, index) => (index % 2 ? element("code", { text: part }) : part));

/** What its author wants to know of a failure, folded. */
function authorDetails(text: string): HTMLElement {
  const title = element("summary", { text: "Details for its author" });
  return element("details", {}, title, element("p", {}, ...marked(sentence(text))));
}

interface Failure {
  failed: boolean;
  reason: string;
  server: string;
}

/** Why a View is not shown, and more for who wants to know: its author reads of a failure at once. */
export function whyNotShown(
  { failed, reason, server }: Failure,
  isForAuthor: boolean,
  words = "This page could not be shown.",
): { text: string; more: Nodes } {
  if (!failed || isForAuthor) return { text: sentence(reason), more: [] };
  const text = `${words} If it happens again, tell the author of ${server}.`;
  return { text, more: [authorDetails(reason)] };
}

/** What is wrong with a View, buttons for what can be done, and more for who wants to know. */
export function troubleBar(
  shown: string,
  text: string,
  acts: Acts,
  { role = "alert", more = [] }: { role?: string; more?: Nodes } = {},
): HTMLElement {
  const buttons = Object.entries(acts).map(([label, act]) => {
    const about = { type: "button", text: label, "aria-label": `${label}: ${shown}` };
    const made = element("button", about);
    made.addEventListener("click", () => {
      for (const button of buttons) button.disabled = true;
      act();
    });
    return made;
  });
  const attributes = { class: "trouble", part: "note", role };
  return element("div", attributes, element("p", { text }), ...buttons, ...more);
}

/** Which tools of a View no model can call, and why; nothing is seen of it without a text. */
export function leftOutNote(text: string): HTMLElement {
  const about = { class: "left-out", part: "note", ...(text ? {} : { hidden: "" }) };
  const title = element("summary", { text: "Some tools of this View are left out" });
  return element("details", about, title, element("p", { text: sentence(text) }));
}

const GRANTEES = {
  model: "The model calls ",
  view: "The View calls its server's ",
  drive: "The model uses the View: ",
};

/** The tools that always run, with a button each to be asked again. */
export function grantList(
  shown: string,
  grants: GrantedTool[],
  withdraw: (grant: GrantedTool) => void,
): HTMLElement {
  const rows = grants.map((grant) => {
    const who = GRANTEES[grant.by];
    const label = `Ask again before ${grant.shown}: ${shown}`;
    const button = element("button", { type: "button", text: "Ask again", "aria-label": label });
    button.addEventListener("click", () => {
      button.disabled = true;
      withdraw(grant);
    });
    const text = element("span", {}, who, element("code", { text: grant.shown }));
    return element("li", {}, text, button);
  });
  const label = `Always allowed: ${shown}`;
  const about = { class: "grants", part: "grants", role: "region", "aria-label": label };
  const title = element("p", { text: "You are not asked before" });
  return element("div", about, title, element("ul", {}, ...rows));
}
