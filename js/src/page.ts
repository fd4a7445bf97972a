/** The page that a View is: it takes the host's style, and its size is reported. */
import { keys, toJson } from "./json.js";
import type { McpUiHostContext } from "./types.js";

// Saved before a page can replace it. Outside a browser there is none.
const page = globalThis.document as Document | undefined;

export type HostStyle = ReturnType<typeof makeHostStyle>;

/** A function that gives the page the host's theme and style variables as they are now. */
export function makeHostStyle(): (context: McpUiHostContext) => void {
  let names: string[] = []; // of the variables that the page has from the host
  return ({ theme, styles = {} }) => {
    const { style, dataset } = page!.documentElement;
    const variables = styles.variables ?? {};
    if (theme) style.colorScheme = dataset.theme = theme;
    for (const name of names) style.removeProperty(name);
    names = keys(variables).filter((name) => name.startsWith("--"));
    for (const name of names) style.setProperty(name, variables[name] ?? "");
  };
}

/** Report the size of the content now and whenever it changes, until the observer is disconnected. */
export function watchSize(
  report: (size: { width: number; height: number }) => void,
): ResizeObserver {
  const { documentElement: html, body } = page!;
  let last: string | undefined;
  const measure = (): void => {
    const { height } = html.style;
    html.style.height = "max-content";
    const size = { width: innerWidth, height: Math.ceil(html.getBoundingClientRect().height) };
    html.style.height = height;
    const now = toJson(size);
    if (now !== last) report(size);
    last = now;
  };
  const observer = new ResizeObserver(() => requestAnimationFrame(measure));
  observer.observe(html);
  observer.observe(body);
  return observer;
}
