/** What the server writes to its standard error. */
import { element } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { timeOf } from "./parts.js";

const MAX_SHOWN = 1000;

export function showOutput(host: DevHost, place: HTMLElement): void {
  const none = element("p", {
    class: "note",
    text: "What the server writes to its standard error.",
  });
  const lines = element("ol", { class: "output" });
  place.append(none, lines);
  host.onLog(
    "output",
    (entries: { at: number; text: string }[]) => {
      const isAtEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 4;
      for (const { at, text } of entries.slice(-MAX_SHOWN)) {
        const time = element("span", { class: "time", text: timeOf(at) });
        lines.append(element("li", {}, time, " ", element("bdi", { text })));
      }
      while (lines.childElementCount > MAX_SHOWN) lines.firstElementChild!.remove();
      none.hidden = true;
      if (isAtEnd) place.scrollTop = place.scrollHeight;
    },
    () => {
      lines.replaceChildren();
      none.hidden = false;
    },
  );
}
