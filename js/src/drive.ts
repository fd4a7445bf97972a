/**
 * Reads a View for a model, and uses it as a person would. It runs beside the View, in the sandbox
 * around it, which loads it when it is first needed. What it says of a page is what the page wants it
 * to say: the View has the same origin.
 */
import { isAction, isChosenByScript, isDone, misfit, perform, prepare, stateOf } from "./act.js";
import { Aim } from "./aim.js";
import { toJson } from "./json.js";
import type { Action, ActionName, DriveRequest, Look } from "./messages.js";
import { Outlines } from "./outlines.js";
import { clientWidth, documentElement, isRendered, ownerDocument, query } from "./native_dom.js";
import { PrivateParts } from "./private_parts.js";
import { References } from "./references.js";
import { Settling, type ViewFrame } from "./settle.js";
import { snapshot } from "./snapshot.js";
import {
  findElement,
  findTarget,
  hidden,
  isProblem,
  unfit,
  type Problem,
  type Target,
} from "./target.js";

const MAX_ANSWER = 250_000; // characters; the host takes a few more
const DRAWN_WITHIN = 200; // milliseconds
const HAS_SIZE_WITHIN = 3000; // milliseconds, since it was asked for
const LOOK_EVERY = 20;
const READ_SHOWN = 60; // elements that are outlined at a time
/** What a page need not show that it has noticed. */
const QUIET: readonly ActionName[] = ["type", "clear", "set", "scroll_into_view", "hover"];

/** Answers a request about a View, with JSON. */
export type Driver = (request: DriveRequest, view: ViewFrame) => Promise<string>;

export type DriverWindow = Window & { transomDriver?: Driver };

/** What is being done in a page, from before it is until the page rests. */
interface Acting {
  action: ActionName;
  target: Target;
  before: string;
  settling: Settling;
  aim?: Aim | undefined;
}

const NOT_SHOWN = hidden("The page around the View does not show it");
const refs = new References();
const outlines = new Outlines();
const privateParts = new PrivateParts();
let acting: Acting | undefined; // with a real mouse and keyboard

const drive: Driver = async (request, view) => {
  if (needsSize(request)) await untilSize(view);
  const page = view.page();
  const answer = page
    ? await answerTo(request, view, page)
    : { problem: "gone", detail: "The View's page shows something else now" };
  const text = toJson(answer)!;
  return text.length > MAX_ANSWER ? toJson({ error: "The answer is too long" })! : text;
};

const needsSize = (request: DriveRequest): boolean =>
  ["look", "act", "target"].includes(request.op) || (request.op === "hide" && request.on);

/** The frames of a page that nobody sees have a size only once their browser is asked for it. */
async function untilSize(view: ViewFrame): Promise<void> {
  const until = performance.now() + HAS_SIZE_WITHIN;
  while (view.page() && !hasSize() && performance.now() < until) {
    view.layOut();
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
  }
}

/** Whether this window, which is around the View, is shown: the View may hide what is its own. */
function hasSize(): boolean {
  const root = documentElement(document);
  return isRendered(root) && clientWidth(root) > 0;
}

async function answerTo(request: DriveRequest, view: ViewFrame, page: Document): Promise<object> {
  switch (request.op) {
    case "look":
      return look(request, page);
    case "act":
      return act(request, view, page);
    case "target":
      return aimAt(request, view, page);
    case "focus":
      return focusOn(request, page);
    case "settle":
      return settle(view, page);
    case "hide":
      return hide(request.on, view);
    case "mark":
      return mark(request.ref, page);
    default:
      return { error: "There is no such request" };
  }
}

function look({ find, under, show }: Look, page: Document): object {
  if (!hasSize()) return NOT_SHOWN;
  const inside = under ? findElement(refs, under, page) : undefined;
  if (inside && isProblem(inside)) return inside;
  const { snapshot: answer, read } = snapshot(page, refs, { find: find ?? null }, inside);
  if (show) outlines.flash(read.slice(0, READ_SHOWN));
  return answer;
}

function mark(ref: string | null | undefined, page: Document): object {
  const node = ref ? findElement(refs, ref, page) : undefined;
  outlines.mark(node && !isProblem(node) ? node : null);
  return {};
}

/** Hide what is private until a picture is taken; then, whether it was hidden all the time. */
async function hide(isOn: boolean, view: ViewFrame): Promise<object> {
  const kept = privateParts.show();
  if (!isOn) return { kept };
  if (!hasSize()) return NOT_SHOWN;
  outlines.end();
  const hidden = privateParts.hide(view.page);
  if (hidden === undefined) {
    privateParts.show();
    return unfit("It is too large to hide what is private in it");
  }
  if (hidden) await drawn();
  return { hidden };
}

/** Wait until the browser has drawn what was changed before; what is out of sight it does not draw. */
const drawn = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, DRAWN_WITHIN);
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });

// --- acts -------------------------------------------------------------------------------------------

/** The elements that an action is for, if it can be done. */
function targetsOf(request: Action, page: Document): [Target, Target?] | Problem {
  const { action, to, onto: told } = request;
  if (!isAction(action)) return unfit("There is no such action");
  const target = findTarget(refs, request, page);
  if (isProblem(target)) return target;
  const wrong = misfit(action, target);
  if (wrong) return wrong;
  if (action !== "drag_to") return [target];
  if (!to) return unfit("drag_to needs the reference of another element");
  const onto = findTarget(refs, { ref: to, action: "hover", ...told }, page);
  if (isProblem(onto)) return { ...onto, of: to };
  // The page may have been scrolled to show the second one: both have to be in sight.
  const again = findTarget(refs, request, page);
  return isProblem(again) ? again : [again, onto];
}

function begin(action: ActionName, target: Target, view: ViewFrame, page: Document): Acting {
  outlines.flash([target.node]);
  const before = stateOf(target.node);
  return { action, target, before, settling: new Settling(view, page, target.node) };
}

async function act(request: Action, view: ViewFrame, page: Document): Promise<object> {
  const found = targetsOf(request, page);
  if (isProblem(found)) return found;
  const [target, to] = found;
  const now = begin(request.action, target, view, page);
  const rest = (): Promise<boolean> => new Settling(view, page, target.node).settled();
  const value = request.value ?? "";
  const done = await perform(request.action, { target, ...(to && { to }), value, page, rest });
  if (typeof done === "object") return done;
  const settled = await now.settling.settled();
  return { done: true, settled, ignored: done && isIgnored(now), secret: target.secret };
}

/** Whether nothing shows that the page has noticed it. What is drawn on a canvas, nobody knows. */
function isIgnored({ action, target, before, settling }: Acting): boolean {
  const root = documentElement(ownerDocument(target.node)!);
  if (QUIET.includes(action) || query(root, "canvas") !== null) return false;
  return !settling.hasChanged && stateOf(target.node) === before;
}

// --- real input ---------------------------------------------------------------------------------------

const shown = ({ ref, role, name, x, y, width, height, secret, scrolled }: Target): object => {
  return { ref, role, name, x, y, width, height, secret, scrolled };
};

/** Where to press, and whether there is nothing to press because it is so already. */
function aimAt(request: Action, view: ViewFrame, page: Document): object {
  const found = targetsOf(request, page);
  if (isProblem(found)) return found;
  const [target, to] = found;
  if (request.aim) {
    endActing();
    acting = begin(request.action, target, view, page);
    acting.aim = aimFor(request.action, target, page);
  }
  const isAlready = isDone(request.action, target);
  const byScript = isChosenByScript(target);
  return { target: shown(target), already: isAlready, byScript, ...(to && { to: shown(to) }) };
}

/** A key may press something else: Enter presses the button of a form. */
const aimFor = (action: ActionName, { node }: Target, page: Document): Aim | undefined =>
  action === "press" ? undefined : new Aim(page, node, action === "drag_to");

function focusOn(request: Action, page: Document): object {
  const found = targetsOf(request, page);
  if (isProblem(found)) return found;
  prepare(request.action, found[0]);
  return {};
}

async function settle(view: ViewFrame, page: Document): Promise<object> {
  const now = acting;
  const settled = await (now?.settling ?? new Settling(view, page)).settled();
  const missed = now?.aim?.hasMissed ?? false;
  const unmet = now?.aim !== undefined && now.action !== "hover" && !now.aim.hasMet && !missed;
  endActing();
  const secret = now?.target.secret ?? false;
  return { settled, missed, unmet, ignored: now !== undefined && isIgnored(now), secret };
}

function endActing(): void {
  acting?.aim?.end();
  acting = undefined;
}

(window as DriverWindow).transomDriver = drive;
