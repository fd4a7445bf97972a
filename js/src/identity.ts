/** What an element is to a model, and what it is called. A reference is good as long as both stay the same. */
import { MAX_NAME, nameOf, visibleText } from "./names.js";
import { childrenOf, has, isElement, labelControl, localName } from "./native_dom.js";
import type { Shown } from "./references.js";
import { isClickable, isWidget, roleOf } from "./roles.js";
import type { Sight } from "./sight.js";
import { shorten } from "./texts.js";

/** Cells of a row that name it. */
export const MAX_COLUMNS = 12;

/** Roles of elements that may react to clicks although nothing says so. */
const MAYBE_CLICKABLE = ["", "row", "listitem", "article", "cell", "gridcell", "img", "group"];

/** What an element is to a model, and its name. */
export function identify(node: Element, sight: Sight, role = usedRoleOf(node, sight)): Shown {
  if (role === "row") return { role, name: rowName(node, sight) };
  const isTree = role === "treeitem" && !has(node, "aria-label") && !has(node, "aria-labelledby");
  const name = isTree
    ? visibleText(node, sight, MAX_NAME, isNestedGroup)
    : nameOf(node, role, sight);
  return { role, name };
}

/** The role of an element; `clickable` for one without a role that reacts to clicks. */
export function usedRoleOf(node: Element, sight: Sight): string {
  const role = roleOf(node);
  if (!MAYBE_CLICKABLE.includes(role) || isUsableCell(node, role)) return role;
  const isLabel = localName(node) === "label" && isLabelOfSeen(node as HTMLLabelElement, sight);
  if (isLabel || !isClickable(node, sight)) return role;
  return role === "row" || role === "img" ? role : "clickable";
}

/** Whether it is a cell that can be used by itself. */
export const isUsableCell = (node: Element, role: string): boolean =>
  role === "gridcell" && (has(node, "tabindex") || has(node, "aria-selected"));

/** Whether the control of a label is there as well, so that nobody needs the label. */
export function isLabelOfSeen(node: HTMLLabelElement, sight: Sight): boolean {
  const control = labelControl(node);
  return control !== null && sight.perceive(control) === "seen";
}

/** A row is named by its cells, without what has a line of its own. */
function rowName(node: Element, sight: Sight): string {
  const cells = Array.from(childrenOf(node)).filter(isElement).slice(0, MAX_COLUMNS);
  const texts = cells.map((cell) => visibleText(cell, sight, MAX_NAME / 2, isUsedAlone));
  return shorten(texts.filter(Boolean).join(", "), MAX_NAME);
}

/** What is in an item of a tree and has lines of its own. */
export const isNestedGroup = (node: Element): boolean => ["group", "tree"].includes(roleOf(node));
/** What is in a row and has a line of its own. */
const isUsedAlone = (node: Element): boolean => isWidget(roleOf(node));
