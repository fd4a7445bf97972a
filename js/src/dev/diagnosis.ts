/** Why a View stays blank, as `transom doctor` says: beside the View that does not connect, and in Findings. */
import { element } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { byId, button, notes, placeOf, plural, type Placed } from "./parts.js";

interface Cause {
  text: string;
  fix: string;
  evidence?: string[];
  source?: string;
  place?: (Placed & { text: string }) | null;
}

/** A diagnosis; `blank` is the View that it was made for without being asked. */
type Diagnosed = { blank: string | null } & (
  | { state: "looking" }
  | { state: "failed"; reason: string }
  | { state: "done"; causes: Cause[]; notes: string[] }
);

/** A cause: what it is, where, how that is known, and the fix. */
function causeOf(cause: Cause): HTMLElement {
  const { text, fix, evidence = [], source, place } = cause;
  return element(
    "div",
    { class: "group" },
    element("p", {}, element("strong", { text })),
    ...evidence.map((each) => element("pre", { text: each })),
    ...(place
      ? [element("pre", { class: "quiet", text: `${placeOf(place)}\n    ${place.text}` })]
      : []),
    element("p", { text: fix }),
    ...notes(source),
  );
}

/** The button that asks for a diagnosis, and what came of the last one. */
export function diagnosisPart(host: DevHost): HTMLElement {
  const answer = element("div", { role: "status" });
  const ask = button("Find out", () => {
    host
      .request("diagnose")
      .catch((error: unknown) => answer.replaceChildren(...notes((error as Error).message)));
  });
  host.onPanel("diagnosis", (found: Diagnosed | null) => {
    ask.disabled = found?.state === "looking";
    answer.replaceChildren(...wordsOf(found));
  });
  return element("div", { class: "group" }, element("p", { class: "row" }, ask), answer);
}

function wordsOf(found: Diagnosed | null): HTMLElement[] {
  if (!found) return [];
  if (found.state === "looking") return notes("Opening it in a browser without a window…");
  if (found.state === "failed") return notes(found.reason);
  const causes = found.causes.map(causeOf);
  return [
    ...(causes.length > 0 ? causes : notes("Nothing wrong found.")),
    ...notes(...found.notes),
  ];
}

/** Above a View that has not connected for a while: the most likely cause. */
export function showBlank(host: DevHost, onMore: () => void): void {
  const place = byId("diagnosis");
  host.onPanel("diagnosis", (found: Diagnosed | null) => {
    place.hidden = !found?.blank;
    if (place.hidden || !found) return;
    const heading = element("h2", { text: "The View has not connected to its host" });
    const parts: HTMLElement[] = [heading];
    if (found.state === "looking") parts.push(...notes("Finding out why…"));
    else if (found.state === "failed") parts.push(...notes(`Why is not known: ${found.reason}`));
    else if (found.causes.length === 0)
      parts.push(...notes("In a browser without a window it does: nothing wrong was found there."));
    else {
      const others = found.causes.length - 1;
      parts.push(causeOf(found.causes[0]!));
      if (others > 0) parts.push(button(`${plural(others, "more cause")}…`, onMore));
    }
    place.replaceChildren(...parts);
  });
}
