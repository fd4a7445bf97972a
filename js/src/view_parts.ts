/** What is shown around a View: whose it is, what is wrong with it, what the user always allows it. */
import { element, type Nodes } from "./dom.js";
import type { GrantedTool, ViewLabel } from "./messages.js";

/** What the user can do, by the label of its button. */
export type Acts = Record<string, () => void>;

/**
 * The host's own label of a View, or of a server that asks. It comes first wherever a View or its requests are shown, and is
 * never cut off: the View's own name follows.
 */
export function attribution({ view, shown = view, server, client }: ViewLabel): HTMLElement {
  const what = shown ? [element("b", { text: shown }), " from "] : ["Server "];
  const parts: Nodes = [...what, element("b", { text: server })];
  if (client) parts.push(" for ", element("b", { text: client }));
  return element("span", { class: "whose", part: "whose" }, ...parts);
}

export const caption = (...children: Nodes): HTMLElement =>
  element("div", { class: "caption", part: "caption" }, ...children);

export const sentence = (text: string): string => text.replace(/\.?$/, ".");

/** What is wrong with a View, and buttons for what can be done. */
export function troubleBar(shown: string, text: string, acts: Acts, role = "alert"): HTMLElement {
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
  return element("div", attributes, element("p", { text }), ...buttons);
}

/** Which tools of a View no model can call, and why; nothing is seen of it without a text. */
export function leftOutNote(text: string): HTMLElement {
  const about = { class: "left-out", part: "note", ...(text ? {} : { hidden: "" }) };
  const title = element("summary", { text: "Some tools of this View are left out" });
  return element("details", about, title, element("p", { text: sentence(text) }));
}

/** The tools that always run, with a button each to be asked again. */
export function grantList(
  shown: string,
  grants: GrantedTool[],
  withdraw: (grant: GrantedTool) => void,
): HTMLElement {
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
  const label = `Always allowed: ${shown}`;
  const about = { class: "grants", part: "grants", role: "region", "aria-label": label };
  const title = element("p", { text: "You are not asked before" });
  return element("div", about, title, element("ul", {}, ...rows));
}
