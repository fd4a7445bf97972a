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

/** JSON, indented, as text that can be scrolled by keyboard. */
export function jsonBlock(value: unknown, label: string): HTMLElement {
  const text = JSON.stringify(value, undefined, 2);
  return element("pre", {
    class: "json",
    tabindex: "0",
    "aria-label": label,
    role: "region",
    text,
  });
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
