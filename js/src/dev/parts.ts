/** Small parts of the page. Texts of servers and Views are set as text, never as HTML. */
import { element } from "../views_bundle.js";

type Attributes = Record<string, string>;

/** A button that does something. */
export function button(
  text: string,
  act: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const made = element("button", { type: "button", text, ...attributes });
  made.addEventListener("click", act);
  return made;
}

/** A text that can be scrolled by keyboard. */
export const textBlock = (text: string, label: string, kind = "text"): HTMLElement =>
  element("pre", { class: kind, tabindex: "0", "aria-label": label, role: "region", text });

/** JSON, indented. */
export const jsonBlock = (value: unknown, label: string): HTMLElement =>
  textBlock(JSON.stringify(value, undefined, 2), label, "json");

/** A paragraph for each text that there is. */
export const notes = (...texts: (string | null | undefined)[]): HTMLElement[] =>
  texts.flatMap((text) => (text ? [element("p", { class: "note", text })] : []));

/** How long something took, if that is known. */
export const lasted = (ms: number | null | undefined): HTMLElement[] =>
  ms == null ? [] : [element("span", { class: "quiet", text: `${ms} ms` })];

/** Put new rows at the top of a list, which has no more than `most`. */
export function addNewest(list: HTMLElement, rows: readonly Node[], most: number): void {
  for (const row of rows) list.prepend(row);
  while (list.childElementCount > most) list.lastElementChild!.remove();
}

/** Something that is folded until it is wanted: then it is made. */
export function folded(title: string, make: () => Node[], isOpen = false): HTMLDetailsElement {
  const details = element("details", {}, element("summary", { text: title }));
  let isMade = false;
  const fill = (): void => {
    if (isMade || !details.open) return;
    isMade = true;
    details.append(...make());
  };
  details.addEventListener("toggle", fill);
  details.open = isOpen;
  fill();
  return details;
}

export const badge = (text: string, kind = ""): HTMLElement =>
  element("span", { class: `badge ${kind}`.trim(), text });

export const byId = (id: string): HTMLElement => document.getElementById(id)!;

export const timeOf = (seconds: number): string => {
  const time = new Date(seconds * 1000);
  return `${time.toLocaleTimeString("en-GB")}.${String(time.getMilliseconds()).padStart(3, "0")}`;
};

/** Where something is: in a file of the author's, in the View's page, or in what that loads. */
export interface Placed {
  file?: string;
  source?: string | null;
  line?: number | null;
  column?: number | null;
}

/** A place as text. */
export function placeOf({ file, source, line, column }: Placed): string {
  if (!file && (!source || source === "about:srcdoc"))
    return line == null ? "" : `the page, line ${line}`;
  return [file || source, line, column].filter((each) => each != null && each !== "").join(":");
}

export const plural = (count: number, word: string): string =>
  `${count} ${word}${count === 1 ? "" : "s"}`;
