/** What is on screen, as the fragment of the page's address. */
import { isObject, type JsonObject } from "../json.js";

/** What the author chose on the toolbar: for each, the id of its control. */
export const CONTROLS = {
  theme: "theme",
  width: "width",
  mode: "mode",
  locale: "locale",
  zone: "zone",
  height: "max-height",
  inset: "safe-area",
};
export type Choices = Partial<Record<keyof typeof CONTROLS, string>>;

export interface Place extends Choices {
  tool?: string;
  args?: JsonObject;
  tab?: string;
}

const WORDS = ["tool", "tab", ...(Object.keys(CONTROLS) as (keyof Choices)[])] as const;

/** Read a fragment; what it gets wrong is left out. */
export function readPlace(fragment: string): Place {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const place: Place = {};
  for (const word of WORDS) {
    const value = given.get(word);
    if (value) place[word] = value;
  }
  try {
    const args: unknown = JSON.parse(given.get("args") ?? "null");
    if (isObject(args)) place.args = args;
  } catch {
    // a link that was cut off
  }
  return place;
}

/** The fragment for a place; nothing if it says nothing. */
export function writePlace(place: Place): string {
  const words = WORDS.flatMap((word): [string, string][] =>
    place[word] ? [[word, place[word]]] : [],
  );
  const args = place.args && Object.keys(place.args).length > 0 ? place.args : undefined;
  if (args) words.push(["args", JSON.stringify(args)]);
  return words.length > 0 ? `#${new URLSearchParams(words)}` : "";
}
