/**
 * What a person can perceive of a page. Text that is there for models alone is not: too small, off
 * the screen for ever, cut off, or in the colour of what is behind it.
 */
import {
  adoptedSheets,
  assignedSlot,
  attribute,
  boxOf,
  clientHeight,
  clientWidth,
  documentElement,
  has,
  inputType,
  isRendered,
  labelsOf,
  localName,
  ownerDocument,
  parentOf,
  rootNode,
  rulesOf,
  ruleText,
  scrollLeft,
  scrollTop,
  scrollWidth,
  shadowRoot,
  styleOf,
  styleSheets,
} from "./native_dom.js";

/** Neither an element nor what is in it; what is in it alone; both. */
export type Perceived = "nothing" | "inside" | "seen";

const LEAST_OPACITY = 0.05;
const LEAST_FONT = 3; // pixels
const LEAST_SIDE = 2; // pixels of what is cut off at its box
const LEAST_DIFFERENCE = 24; // of red, green and blue together, from 0 to 765
const CUT_AWAY =
  /^(inset\((4[5-9]|[5-9]\d|100)(\.\d+)?%|(circle|ellipse)\(0|polygon\(0(px)? 0(px)?(, 0(px)? 0(px)?)*\))/;
const ADDS_TEXT = /:(before|after)/i;
const MAX_RULE_TEXT = 50_000; // characters of rules that are read
const NUMBERS = /[\d.]+/g;
/** Controls that pages hide behind something that looks better, and that is what is pressed. */
const COVERED_TYPES = ["checkbox", "radio", "range", "file", "color", "date", "time"];

const FADING = ["button", "a"];

type Colour = [red: number, green: number, blue: number, alpha: number];

const MAX_COLOURS = 1000;
const colours = new Map<string, Colour>(); // by how the browser writes them

function readColour(text: string): Colour {
  let colour = colours.get(text);
  if (!colour) {
    colour = text.startsWith("rgb") ? writtenColour(text) : drawnColour(text);
    if (colours.size >= MAX_COLOURS) colours.clear();
    colours.set(text, colour);
  }
  return colour;
}

function writtenColour(text: string): Colour {
  const [red = 0, green = 0, blue = 0, alpha = 1] = (text.match(NUMBERS) ?? []).map(Number);
  return [red, green, blue, alpha];
}

/** A colour of another space, as the browser draws it. */
function drawnColour(text: string): Colour {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d")!;
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}

/** How much of an element is to be seen, from 0 to 1, by its own style. */
function ownOpacity({ opacity, filter }: CSSStyleDeclaration): number {
  const filtered = filter === "none" ? 1 : (/opacity\(([\d.]+)\)/.exec(filter)?.[1] ?? 1);
  return Number(opacity) * Number(filtered);
}

const difference = (one: Colour, other: Colour): number =>
  Math.abs(one[0] - other[0]) + Math.abs(one[1] - other[1]) + Math.abs(one[2] - other[2]);

const isClipped = ({ overflowX, overflowY }: CSSStyleDeclaration): boolean =>
  overflowX !== "visible" && overflowY !== "visible";

/** Whether a rule of a document may put a text before or after elements. What cannot be read, may. */
function hasAddingRule(page: Document): boolean {
  try {
    const sheets = [...Array.from(styleSheets(page)), ...adoptedSheets(page)];
    const rules = sheets.flatMap((sheet) => Array.from(rulesOf(sheet)));
    let room = MAX_RULE_TEXT;
    return rules.some((rule) => {
      const text = ruleText(rule);
      room -= text.length;
      return room < 0 || ADDS_TEXT.test(text);
    });
  } catch {
    return true;
  }
}

/** The function, which computes each of its values once. */
function once<Key, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined && !known.has(key)) known.set(key, (value = compute(key)));
    return value as Value;
  };
}

/** One look at a page, which is not scrolled meanwhile: each style and box is computed once. */
export class Sight {
  readonly style = once(styleOf);
  readonly box = once(boxOf);
  readonly #hasAddingRule = once(hasAddingRule);

  /** The size of the window that shows a document, by its outermost element. */
  readonly window = once((root: Element) => ({
    width: clientWidth(root),
    height: clientHeight(root),
  }));

  /** What is perceived of an element, if what is around it is. */
  readonly perceive = once((node: Element): Perceived => {
    const found = this.#perceive(node);
    const isShown = found === "nothing" && (this.isFaint(node) || this.#isCoveredControl(node));
    return isShown ? "seen" : found;
  });

  /** Whether nothing around an element hides it either. */
  isPerceived(node: Element): boolean {
    if (this.perceive(node) !== "seen") return false;
    for (let at = parentOf(node); at; at = parentOf(at)) {
      if (this.perceive(at) === "nothing") return false;
    }
    return true;
  }

  #perceive(node: Element): Perceived {
    if (has(node, "inert") || attribute(node, "aria-hidden") === "true") return "nothing";
    if (!isRendered(node)) return this.style(node).display === "contents" ? "inside" : "nothing";
    const style = this.style(node);
    if (this.#opacity(node) < LEAST_OPACITY) return "nothing";
    const { width, height } = this.box(node);
    if ((width < LEAST_SIDE || height < LEAST_SIDE) && isClipped(style)) return "nothing";
    const { position } = style;
    if (CUT_AWAY.test(style.clipPath) || this.#isCut(style, position)) return "nothing";
    if (this.#isOffForEver(node, position)) return "nothing";
    if (style.visibility !== "visible" || (width === 0 && height === 0)) return "inside";
    return "seen";
  }

  /** The same with all that is around it. */
  readonly #opacity = once((node: Element): number => {
    const parent = parentOf(node);
    return ownOpacity(this.style(node)) * (parent ? this.#opacity(parent) : 1);
  });

  /** `clip: rect(0, 0, 0, 0)`, the old way to show something to screen readers alone. */
  #isCut(style: CSSStyleDeclaration, position: string): boolean {
    if (position !== "absolute" && position !== "fixed") return false;
    const clip = style.getPropertyValue("clip");
    if (!clip.startsWith("rect")) return false;
    const [top = 0, right = 0, bottom = 0, left = 0] = (clip.match(NUMBERS) ?? []).map(Number);
    return right - left < LEAST_SIDE || bottom - top < LEAST_SIDE;
  }

  /** Whether no scrolling brings it onto the screen. */
  #isOffForEver(node: Element, position: string): boolean {
    const { left, top, right, bottom } = this.box(node);
    const root = documentElement(ownerDocument(node)!);
    const { width, height } = this.window(root);
    const isRight = left >= width;
    const isEmpty = right === left && bottom === top;
    if (isEmpty) return false;
    if (position === "fixed") {
      return isRight || top >= height || right <= 0 || bottom <= 0;
    }
    if (right > 0 && bottom > 0) return isRight && scrollWidth(root) <= width;
    let x = right;
    let y = bottom;
    for (let at = parentOf(node); at && (x <= 0 || y <= 0); at = parentOf(at)) {
      x += scrollLeft(at);
      y += scrollTop(at);
    }
    return x <= 0 || y <= 0;
  }

  /** Whether it is a button that fades in, as many do under the pointer. */
  isFaint(node: Element): boolean {
    if (!FADING.includes(localName(node)) || !isRendered(node) || !this.#isLarge(node)) {
      return false;
    }
    const { opacity, transitionProperty, transitionDuration } = this.style(node);
    if (Number(opacity) >= LEAST_OPACITY || has(node, "inert")) return false;
    return /opacity|all/.test(transitionProperty) && parseFloat(transitionDuration) > 0;
  }

  #isLarge(node: Element): boolean {
    const { width, height } = this.box(node);
    return width > 2 * LEAST_SIDE && height > 2 * LEAST_SIDE;
  }

  #isCoveredControl(node: Element): boolean {
    const name = localName(node);
    const type = name === "input" ? inputType(node as HTMLInputElement) : name;
    if (type !== "select" && !COVERED_TYPES.includes(type)) return false;
    if (has(node, "inert") || !isRendered(node)) return false;
    const around = parentOf(node);
    const label = labelsOf(node).find((each) => this.perceive(each) === "seen");
    return Boolean(label ?? (around && this.perceive(around) === "seen" && this.#isLarge(node)));
  }

  /** Whether what is written in it is shown as dots. */
  showsDots(node: Element): boolean {
    const shown = (this.style(node) as { webkitTextSecurity?: string }).webkitTextSecurity ?? "";
    return shown !== "" && shown !== "none";
  }

  /** Whether a style sheet may put a text before or after an element. */
  mayHaveAddedText(node: Element): boolean {
    const page = ownerDocument(node)!;
    const isApart = rootNode(node) !== page || Boolean(shadowRoot(node) ?? assignedSlot(node));
    return isApart || this.#hasAddingRule(page);
  }

  // --- text -----------------------------------------------------------------------------------------

  /** Whether the text in an element can be read, if what is around it is perceived. */
  readonly isReadable = once((node: Element): boolean => {
    const style = this.style(node);
    if (this.perceive(node) !== "seen" && style.display !== "contents") return false;
    if (style.visibility !== "visible" || parseFloat(style.fontSize) < LEAST_FONT) return false;
    if (parseFloat(style.textIndent) < -900 || this.showsDots(node)) return false;
    const text = readColour(style.color);
    if (text[3] >= LEAST_OPACITY) {
      const behind = this.#background(node);
      if (!behind || difference(text, behind) >= LEAST_DIFFERENCE) return true;
    }
    return style.getPropertyValue("background-clip").includes("text");
  });

  /** The colour behind an element: white if nothing has one; undefined if it is a picture. */
  readonly #background = once((node: Element): Colour | undefined => {
    const { backgroundColor, backgroundImage } = this.style(node);
    const own = readColour(backgroundColor);
    if (backgroundImage !== "none") return undefined;
    if (own[3] > 1 - LEAST_OPACITY) return own;
    if (own[3] >= LEAST_OPACITY) return undefined;
    const parent = parentOf(node);
    return parent ? this.#background(parent) : this.#canvas(node);
  });

  /** What a page without a background is on: in a dark scheme, nobody knows. */
  #canvas(node: Element): Colour | undefined {
    return this.style(node).colorScheme.includes("dark") ? undefined : [255, 255, 255, 1];
  }
}
