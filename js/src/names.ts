/**
 * The names of elements. The accessible-name algorithm computes them; it reads a page with the page's
 * own methods, so whatever it throws, the text that can be seen is the name.
 */
import { computeAccessibleName } from "dom-accessibility-api";
import {
  attribute,
  characters,
  childrenOf,
  contains,
  documentElement,
  frameOf,
  isElement,
  isText,
  labelsOf,
  localName,
  ownerDocument,
  parentOf,
  query,
  queryAll,
  sameTreeById,
} from "./native_dom.js";
import { isNamedByContent, isSecret, isSelect, PRIVATE } from "./roles.js";
import type { Sight } from "./sight.js";
import { MAX_RAW, shorten } from "./texts.js";

export const MAX_NAME = 120; // characters
export const MAX_VALUE = 200;
const MAX_PARTS = 200; // nodes that a name is computed from

const CAPTIONS = ["caption", "figcaption", "legend"];
const FIELDS = "input, textarea, [contenteditable]";
const REFERRING = ["aria-labelledby", "aria-owns"]; // attributes by which other elements name one
const REFERS = REFERRING.map((name) => `[${name}]`).join(", ");
const IS_PRIVATE = `[${PRIVATE}]`;
/** The style of a text before or after an element where there is none. */
const NOTHING_ADDED = { getPropertyValue: () => "none" } as unknown as CSSStyleDeclaration;

/** Whether an element is private, or is in one that is. */
export function isPrivate(node: Element): boolean {
  for (let at: Element | null = node; at; at = parentOf(at) ?? frameOf(ownerDocument(at)!)) {
    if (attribute(at, PRIVATE) !== null) return true;
  }
  return false;
}

/** The text in an element that a person can read, without the parts that `leave` names. */
export function visibleText(
  node: Element,
  sight: Sight,
  limit = MAX_NAME,
  leave: (part: Element) => boolean = () => false,
): string {
  if (isPrivate(node)) return "";
  const parts: string[] = [];
  let room = MAX_PARTS;
  let length = 0;
  const read = (at: Element): void => {
    const canRead = sight.isReadable(at);
    for (const child of childrenOf(at)) {
      if ((room -= 1) < 0 || length > limit) return;
      if (isText(child)) {
        if (!canRead) continue;
        const text = characters(child).slice(0, MAX_RAW);
        if (text.trim()) length += text.length;
        parts.push(text);
      } else if (isElement(child) && !leave(child) && attribute(child, PRIVATE) === null) {
        if (isSelect(child) || localName(child) === "script" || localName(child) === "style") {
          continue;
        }
        if (sight.perceive(child) === "nothing") continue;
        const isInline = sight.style(child).display.startsWith("inline");
        if (!isInline) parts.push(" ");
        read(child);
        if (!isInline) parts.push(" ");
      }
    }
  };
  read(node);
  return shorten(parts.join(""), limit);
}

/** The elements that name another. */
function namersOf(node: Element): Element[] {
  const said = REFERRING.map((name) => attribute(node, name)?.slice(0, MAX_RAW) ?? "").join(" ");
  const ids = said.split(/\s+/).filter(Boolean).slice(0, 20);
  const named = ids.map((id) => sameTreeById(node, id)).filter((each) => each !== null);
  return [...named, ...labelsOf(node)];
}

/**
 * Whether something in an element is private, or may be named by something else that is. A password
 * is, but not for the field that has it.
 */
function mayShowPrivate(node: Element, named: Element, sight: Sight): boolean {
  if (query(node, "*") === null) return false;
  if (query(node, IS_PRIVATE) !== null) return true;
  const fields = Array.from(queryAll(node, FIELDS));
  if (fields.some((each) => each !== named && isSecret(each, sight))) return true;
  if (query(node, REFERS) === null) return false;
  return query(documentElement(ownerDocument(node)!), IS_PRIVATE) !== null;
}

/** Whether it has so few parts that a name can be computed from them, and shows none in private. */
function isSmall(node: Element): boolean {
  let room = MAX_PARTS;
  const count = (at: Node): boolean => {
    for (const child of childrenOf(at)) {
      if ((room -= 1) < 0) return false;
      // It may be in a shadow root, with what it shows outside.
      if (isElement(child) && (attribute(child, PRIVATE) !== null || !count(child))) return false;
    }
    return true;
  };
  return count(node);
}

/** Whether the name of an element can be computed: it is small, and has nothing private in it. */
function isComputable(node: Element, sight: Sight): boolean {
  return [node, ...namersOf(node)].every(
    (each, index) =>
      isSmall(each) &&
      !mayShowPrivate(each, node, sight) &&
      (index === 0 || contains(node, each) || !isPrivate(each)),
  );
}

/** The label of an element that has too many parts for its name to be computed, such as a long table. */
function labelOf(node: Element, sight: Sight): string {
  const label = attribute(node, "aria-label");
  if (label?.trim()) return shorten(label, MAX_NAME);
  const captions = Array.from(childrenOf(node)).filter(
    (each) => isElement(each) && CAPTIONS.includes(localName(each)),
  ) as Element[];
  const texts = [...namersOf(node), ...captions].map((each) => visibleText(each, sight));
  return shorten(texts.join(" "), MAX_NAME);
}

/** The name of an element, cut off where it is too long. */
export function nameOf(node: Element, role: string, sight: Sight): string {
  let name = "";
  try {
    if (isComputable(node, sight)) {
      const computed: unknown = computeAccessibleName(node, {
        computedStyleSupportsPseudoElements: true,
        getComputedStyle: (each, pseudo) => {
          if (!pseudo) return sight.style(each);
          return sight.mayHaveAddedText(each) ? getComputedStyle(each, pseudo) : NOTHING_ADDED;
        },
      });
      if (typeof computed === "string") name = shorten(computed, MAX_NAME);
    }
  } catch {
    // The page has replaced what the library calls.
  }
  if (!name && !isSmall(node)) name = labelOf(node, sight);
  if (!name && isNamedByContent(role)) name = visibleText(node, sight);
  const hint = attribute(node, "placeholder") ?? attribute(node, "aria-placeholder");
  return name || shorten(hint ?? attribute(node, "title") ?? "", MAX_NAME);
}
