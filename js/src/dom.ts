/** Elements of a page that shows Views. Texts are set as text, never as HTML. */
import styles from "./views.css";

export type Nodes = (Node | string)[];

/** The styles of everything here, independent of those of the page around it. */
const sheet = new CSSStyleSheet();
sheet.replaceSync(styles);

/** A root of its own for what is shown in an element. */
export function rootOf(place: HTMLElement): ShadowRoot {
  const root = place.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [sheet];
  return root;
}

/** Make an element with attributes; `text` is what is in it. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  { text, ...attributes }: Record<string, string> = {},
  ...children: Nodes
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

const REVOKE_AFTER = 10_000; // milliseconds that a browser has to begin saving a file

/** What is given as base64. */
export const blobOf = (base64: string, type: string): Blob =>
  new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], { type });

/** Have the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER);
}

const ICONS = {
  fullscreen: "M3 8V3h5M12 3h5v5M17 12v5h-5M8 17H3v-5",
  pip: "M3 4h14v12H3zM11 10h4v4h-4z",
  close: "M5 5l10 10M15 5L5 15",
  info: "M10 9v5M10 6v.1M10 3a7 7 0 1 0 .01 0z",
  pin: "M7 3h6M8 3v5l-3 4h10l-3-4V3M10 12v5",
  key: "M11 9l6-6M14 6l2.5 2.5M12 11.5a3.8 3.8 0 1 1-3.5-3.5 3.8 3.8 0 0 1 3.5 3.5z",
};

export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}
