/** Runs of elements that are alike, such as rows and cards: the first few say what the others are. */
import { className, isElement, localName, query } from "./native_dom.js";
import { isWidget, roleOf } from "./roles.js";

/** A run that is cut short: the index after its last element, how many are shown, and of what. */
export interface Run {
  end: number;
  to: number;
  of: string;
}

/** From which number on a run is cut short, and to how many. */
interface Limits {
  of: string;
  from: number;
  to: number;
}

const FIELDS = "input:not([type=hidden]), select, textarea";
const KNOWN: Record<string, Limits> = {
  row: { of: "row", from: 6, to: 3 },
  option: { of: "option", from: 10, to: 5 },
  listitem: { of: "item", from: 10, to: 5 },
  treeitem: { of: "item", from: 20, to: 12 },
};
const WITH_FIELDS: Limits = { of: "thing", from: 40, to: 30 };
const WIDGETS: Limits = { of: "thing", from: 30, to: 20 };
const OTHERS: Limits = { of: "thing", from: 12, to: 4 };

/** With what an element is alike. */
function keyOf(node: Element): string {
  const role = roleOf(node);
  if (role in KNOWN) return role;
  return `${localName(node)} ${role} ${className(node).split(/\s/, 1)[0]}`;
}

function limitsOf(node: Element): Limits {
  const role = roleOf(node);
  const known = KNOWN[role];
  if (known) return known;
  if (isWidget(role)) return WIDGETS;
  return query(node, FIELDS) ? WITH_FIELDS : OTHERS;
}

/** The run that begins with an element, if it is long enough to be cut short. */
export function runAt(children: Node[], start: number): Run | undefined {
  const first = children[start] as Element;
  const key = keyOf(first);
  let end = start + 1;
  for (let at = end; at < children.length; at += 1) {
    const child = children[at]!;
    if (!isElement(child)) continue;
    if (keyOf(child) !== key) break;
    end = at + 1;
  }
  const { of, from, to } = limitsOf(first);
  return end - start < from ? undefined : { end, to, of };
}
