/** The element that a reference stands for, if something can be done to it now, and where to press. */
import { identify } from "./identity.js";
import type { Action } from "./messages.js";
import { isPrivate, MAX_NAME, visibleText } from "./names.js";
import {
  boxOf,
  boxesOf,
  clientHeight,
  clientWidth,
  documentElement,
  frameOf,
  has,
  hit,
  isConnected,
  isWithin,
  labelsOf,
  localName,
  ownerDocument,
  parentOf,
  scrollTo,
} from "./native_dom.js";
import type { References, Shown } from "./references.js";
import { isDisabled, isSecret } from "./roles.js";
import { Sight } from "./sight.js";

/** Why something was not done. */
export interface Problem {
  problem: "unknown" | "gone" | "hidden" | "covered" | "disabled" | "changed" | "unfit";
  detail: string;
  /** The reference of what it is about, if that is not the one that something is done to. */
  of?: string;
  /** Whether something was done before it was found. */
  begun?: boolean;
}

/** An element, what it is, and where it can be pressed, in pixels of the View's window. */
export interface Target extends Shown {
  ref: string;
  node: Element;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Whether what is typed there is shown to nobody. */
  secret: boolean;
  /** Whether the page was scrolled to bring it into sight: the browser has not drawn that yet. */
  scrolled: boolean;
}

interface Point {
  x: number;
  y: number;
}

export const isProblem = (found: object): found is Problem => "problem" in found;

/** Something that cannot be done to an element, or to any. */
export const unfit = (detail: string): Problem => problem("unfit", detail);

/** Something that nobody can see. */
export const hidden = (detail: string): Problem => problem("hidden", detail);

const problem = (kind: Problem["problem"], detail: string): Problem => ({ problem: kind, detail });

/** Actions that press nothing. */
const ANYWHERE = new Set(["scroll_into_view", "submit"]);
const WRITING = new Set(["type", "clear", "set"]);

/** What is pressed for an element: for an option that only its list shows, the list. */
function pressed(node: Element): Element {
  if (localName(node) !== "option") return node;
  let at: Element | null = node;
  while (at && localName(at) !== "select") at = parentOf(at);
  return at ?? node;
}

export function findElement(refs: References, ref: string, page: Document): Element | Problem {
  const node = refs.find(ref);
  if (node === undefined) return problem("unknown", `${ref} was never given`);
  if (!node || !isConnected(node) || !isOf(node, page)) {
    return problem("gone", `${ref} is not on the page any more`);
  }
  if (isPrivate(node)) return unfit(`${ref} is in a private part of the page`);
  return node;
}

/** Whether an element is in a document, or in a frame of it. */
function isOf(node: Element, page: Document): boolean {
  for (let at = ownerDocument(node); at;) {
    if (at === page) return true;
    const frame = frameOf(at);
    at = frame && ownerDocument(frame);
  }
  return false;
}

/** The element that an action is for, scrolled into sight; or what is wrong with it. */
export function findTarget(
  refs: References,
  { ref, action, role, name }: Action,
  page: Document,
): Target | Problem {
  const node = findElement(refs, ref, page);
  if (isProblem(node)) return node;
  const sight = new Sight();
  const known = refs.shown(ref);
  const place = pressed(node);
  if (!sight.isPerceived(place)) {
    return hidden(`${known ? say(known) : ref} is not shown now`);
  }
  const now = identify(node, sight);
  const approved = { role: role ?? known?.role, name: name ?? known?.name };
  for (const before of [known, approved]) {
    if (before && (before.role !== now.role || before.name !== now.name)) {
      return problem("changed", `${ref} is ${say(now)} now`);
    }
  }
  if (isDisabled(node) && action !== "scroll_into_view" && action !== "hover") {
    return problem("disabled", `${say(now)} is disabled`);
  }
  if (WRITING.has(action) && has(node, "readonly")) {
    return problem("disabled", `${say(now)} can only be read`);
  }
  const found = pointOf(place, page);
  if (!("x" in found) && !ANYWHERE.has(action)) {
    const what = found.by ? sayOther(found.by, sight) : "something";
    return problem("covered", `${say(now)} is covered by ${what}`);
  }
  const { width, height } = boxOf(place);
  const point = "x" in found ? found : { x: 0, y: 0, scrolled: true };
  return { ref, node, ...now, ...point, width, height, secret: isSecret(node, sight) };
}

export const say = ({ role, name }: Shown): string =>
  `${role || "something"} ${name ? `"${name}"` : ""}`.trim();

/** What is in front of another element. */
function sayOther(node: Element, sight: Sight): string {
  if (isPrivate(node)) return "a private part of the page";
  const { role, name } = identify(node, sight);
  return say({ role, name: name || visibleText(node, sight, MAX_NAME / 2) });
}

/** Where an element can be pressed, after it was scrolled into sight; or what is in front of it. */
function pointOf(
  node: Element,
  page: Document,
): (Point & { scrolled: boolean }) | { by: Element | null } {
  let by: Element | null = null;
  let scrolled = false;
  for (const place of [node, ...labelsOf(node)]) {
    scrolled = bringIntoSight(place) || scrolled;
    for (const { left, top, width, height } of [...boxesOf(place)].slice(0, 3)) {
      for (const [across, down] of PLACES) {
        const inside = { x: left + width * across, y: top + height * down };
        const point = toView(place, inside, page);
        const there = hit(page, point.x, point.y);
        if (
          there &&
          (isWithin(there, node) || labelsOf(node).some((one) => isWithin(there, one)))
        ) {
          return { ...point, scrolled };
        }
        by ??= there;
      }
    }
  }
  return { by };
}

/** Parts of a box that are tried. */
const PLACES: [across: number, down: number][] = [
  [0.5, 0.5],
  [0.25, 0.5],
  [0.75, 0.5],
  [0.5, 0.2],
  [0.5, 0.8],
];

/** Whether it had to be scrolled. */
function bringIntoSight(node: Element): boolean {
  const { left, top, right, bottom } = boxOf(node);
  const root = documentElement(ownerDocument(node)!);
  const isInside =
    left >= 0 && top >= 0 && right <= clientWidth(root) && bottom <= clientHeight(root);
  const middle = hit(ownerDocument(node)!, (left + right) / 2, (top + bottom) / 2);
  if (isInside && middle && isWithin(middle, node)) return false;
  scrollTo(node, { block: "center", inline: "nearest", behavior: "instant" });
  return true;
}

/** A point of an element's own window, in that of the View. */
export function toView(node: Element, { x, y }: Point, page: Document): Point {
  for (let at = ownerDocument(node); at && at !== page;) {
    const frame = frameOf(at);
    if (!frame) break;
    const { left, top } = boxOf(frame);
    x += left;
    y += top;
    at = ownerDocument(frame);
  }
  return { x, y };
}
