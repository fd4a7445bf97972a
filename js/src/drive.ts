/**
 * Reads a View for a model, and uses it as a person would. It runs beside the View, in the sandbox
 * around it, which loads it when it is first needed. What it says of a page is what the page wants it
 * to say: the View has the same origin.
 */
import { toJson } from "./json.js";
import type { DriveRequest, Look } from "./messages.js";
import { isPrivate } from "./names.js";
import { isConnected } from "./native_dom.js";
import { Outlines } from "./outlines.js";
import { References } from "./references.js";
import { snapshot } from "./snapshot.js";

const MAX_ANSWER = 250_000; // characters; the host takes a few more
const READ_SHOWN = 60; // elements that are outlined at a time

/** Answers a request about the View in a frame, with JSON. */
export type Driver = (
  request: DriveRequest,
  frameOf: () => HTMLIFrameElement | undefined,
) => Promise<string>;

export type DriverWindow = Window & { transomDriver?: Driver };

/** Why something was not done. */
export interface Problem {
  problem: "unknown" | "gone" | "hidden" | "covered" | "disabled" | "changed" | "unfit";
  detail: string;
}

const refs = new References();
const outlines = new Outlines();

const drive: Driver = async (request, frameOf) => {
  const page = frameOf()?.contentDocument;
  const answer = page
    ? await answerTo(request, page)
    : { problem: "gone", detail: "The View's page shows something else now" };
  const text = toJson(answer)!;
  return text.length > MAX_ANSWER ? toJson({ error: "The answer is too long" })! : text;
};

async function answerTo(request: DriveRequest, page: Document): Promise<object> {
  switch (request.op) {
    case "look":
      return look(request, page);
    default:
      throw new Error(`There is no ${request.op}`);
  }
}

function look({ find, under, show }: Look, page: Document): object {
  const inside = under ? refs.find(under) : undefined;
  if (under && !inside) return missing(under, inside);
  if (inside && (!isConnected(inside) || isPrivate(inside))) return missing(under!, null);
  const { snapshot: answer, read } = snapshot(
    page,
    refs,
    { find: find ?? null },
    inside ?? undefined,
  );
  if (show) outlines.flash(read.slice(0, READ_SHOWN));
  return answer;
}

function missing(ref: string, found: Element | null | undefined): Problem {
  return found === undefined
    ? { problem: "unknown", detail: `${ref} was never given` }
    : { problem: "gone", detail: `${ref} is not on the page any more` };
}

(window as DriverWindow).transomDriver = drive;
