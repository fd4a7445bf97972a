/**
 * The DOM of a stranger's page, read with the methods of this window: a page that has replaced its
 * own prototypes, or has properties of its own on its elements, is read as it is all the same.
 */

type Getter<Target, Value> = (target: Target) => Value;

/* eslint-disable @typescript-eslint/unbound-method -- they are called with an element */

/** The getter of a property, which is called with an element of any window. */
function getter<Target extends object, Key extends keyof Target>(
  { prototype }: { prototype: Target },
  key: Key,
): Getter<Target, Target[Key]> {
  const { get } = Object.getOwnPropertyDescriptor(prototype, key)!;
  return (target) => Reflect.apply(get!, target, []) as Target[Key];
}

/** The setter of a property: what frameworks put on an element to notice changes is passed by. */
function setter<Target extends object, Key extends keyof Target>(
  { prototype }: { prototype: Target },
  key: Key,
): (target: Target, value: Target[Key]) => void {
  const { set } = Object.getOwnPropertyDescriptor(prototype, key)!;
  return (target, value) => Reflect.apply(set!, target, [value]);
}

/* eslint-enable @typescript-eslint/unbound-method */

type Method = (...given: never[]) => unknown;

/** A method, which is called with an element of any window. */
function method<Target extends object, Key extends keyof Target>(
  { prototype }: { prototype: Target },
  key: Key,
): Target[Key] extends Method
  ? (target: Target, ...given: Parameters<Target[Key]>) => ReturnType<Target[Key]>
  : never {
  const called = prototype[key] as Method;
  const call = (target: object, ...given: never[]): unknown => Reflect.apply(called, target, given);
  return call as never;
}

// --- nodes ------------------------------------------------------------------------------------------

export const nodeType = getter(Node, "nodeType");
export const firstChild = getter(Node, "firstChild");
export const nextSibling = getter(Node, "nextSibling");
export const parentNode = getter(Node, "parentNode");
export const ownerDocument = getter(Node, "ownerDocument");
export const isConnected = getter(Node, "isConnected");
export const textContent = getter(Node, "textContent");
export const rootNode = method(Node, "getRootNode");
export const contains = method(Node, "contains");
export const characters = getter(CharacterData, "data");

export const isElement = (node: Node | null): node is Element =>
  node !== null && nodeType(node) === Node.ELEMENT_NODE;
export const isText = (node: Node): node is Text => nodeType(node) === Node.TEXT_NODE;
const isShadow = (node: Node): node is ShadowRoot => {
  if (nodeType(node) !== Node.DOCUMENT_FRAGMENT_NODE) return false;
  try {
    return Boolean(hostOf(node as ShadowRoot));
  } catch {
    return false; // it is another kind of fragment
  }
};
const hostOf = getter(ShadowRoot, "host");

// --- elements ---------------------------------------------------------------------------------------

export const localName = getter(Element, "localName");
export const className = (node: Element): string => attribute(node, "class") ?? "";
export const shadowRoot = getter(Element, "shadowRoot");
export const scrollLeft = getter(Element, "scrollLeft");
export const scrollTop = getter(Element, "scrollTop");
export const scrollWidth = getter(Element, "scrollWidth");
export const clientWidth = getter(Element, "clientWidth");
export const clientHeight = getter(Element, "clientHeight");
export const assignedSlot = getter(Element, "assignedSlot");
export const attribute = method(Element, "getAttribute");
export const boxOf = method(Element, "getBoundingClientRect");
export const isRendered = method(Element, "checkVisibility");
export const matches = method(Element, "matches");
export const closest = method(Element, "closest");
export const queryAll = method(Element, "querySelectorAll");
export const query = method(Element, "querySelector");
export const boxesOf = method(Element, "getClientRects");
const animationsOf = method(Element, "getAnimations");
export const animationsIn = (node: Element): Animation[] => animationsOf(node, { subtree: true });
export const scrollTo = method(Element, "scrollIntoView");
export const elementById = method(Document, "getElementById");
export const elementByIdInShadow = method(DocumentFragment, "getElementById");
export const has = (node: Element, name: string): boolean => attribute(node, name) !== null;
export const isHtml = (node: Element): node is HTMLElement =>
  namespaceOf(node) === "http://www.w3.org/1999/xhtml";
const namespaceOf = getter(Element, "namespaceURI");

export const assigned = method(HTMLSlotElement, "assignedNodes");
export const contentDocument = getter(HTMLIFrameElement, "contentDocument");
export const labelControl = getter(HTMLLabelElement, "control");
export const isEditable = getter(HTMLElement, "isContentEditable");
export const tabIndex = getter(HTMLElement, "tabIndex");
export const focus = method(HTMLElement, "focus");
export const click = method(HTMLElement, "click");

// --- documents --------------------------------------------------------------------------------------

export const windowOf = getter(Document, "defaultView");
/** The frame that a document is in, if it has the same origin as what is around. */
export const frameOf = (page: Document): Element | null => windowOf(page)?.frameElement ?? null;
export const documentElement = getter(Document, "documentElement");
export const styleSheets = getter(Document, "styleSheets");
export const adoptedSheets = getter(Document, "adoptedStyleSheets");
/** The rules of a style sheet; it throws for one of another origin. */
export const rulesOf = getter(CSSStyleSheet, "cssRules");
export const ruleText = getter(CSSRule, "cssText");
const setAdoptedSheets = setter(Document, "adoptedStyleSheets");
const shadowSheets = getter(ShadowRoot, "adoptedStyleSheets");
const setShadowSheets = setter(ShadowRoot, "adoptedStyleSheets");
export const setRules = method(CSSStyleSheet, "replaceSync");
export const activeElement = getter(Document, "activeElement");
export const activeInShadow = getter(ShadowRoot, "activeElement");
export const elementAt = method(Document, "elementFromPoint");
export const elementAtInShadow = method(ShadowRoot, "elementFromPoint");
const selectionOf = method(Document, "getSelection");
const selectChildren = method(Selection, "selectAllChildren");
const collapseToEnd = method(Selection, "collapseToEnd");

export function selectAllIn(node: Element): void {
  const selection = selectionOf(ownerDocument(node)!);
  if (selection) selectChildren(selection, node);
}

export function caretToEndOf(node: Element): void {
  selectAllIn(node);
  const selection = selectionOf(ownerDocument(node)!);
  if (selection) collapseToEnd(selection);
}

export const execute = method(Document, "execCommand");
export const countElements = (page: Document): number => elementsByTag(page, "*").length;
const elementsByTag = method(Document, "getElementsByTagName");

/** What has elements and style sheets of its own. */
export type Root = Document | ShadowRoot;

export const isDocument = (root: Root): root is Document => nodeType(root) === Node.DOCUMENT_NODE;
const queryAllInDocument = method(Document, "querySelectorAll");
const queryAllInShadow = method(DocumentFragment, "querySelectorAll");

export const queryAllIn = (root: Root, selector: string): NodeListOf<Element> =>
  isDocument(root) ? queryAllInDocument(root, selector) : queryAllInShadow(root, selector);
export const adoptedIn = (root: Root): readonly CSSStyleSheet[] =>
  isDocument(root) ? adoptedSheets(root) : shadowSheets(root);

export function adoptIn(root: Root, sheets: CSSStyleSheet[]): void {
  if (isDocument(root)) setAdoptedSheets(root, sheets);
  else setShadowSheets(root, sheets);
}

/** A new style sheet that it can adopt: each document takes only those that were made in its window. */
export function sheetFor(root: Root): CSSStyleSheet {
  const page = isDocument(root) ? root : ownerDocument(root)!;
  return new (windowOf(page) as typeof globalThis & Window).CSSStyleSheet();
}

// --- form controls ----------------------------------------------------------------------------------

export const inputType = getter(HTMLInputElement, "type");
export const inputValue = getter(HTMLInputElement, "value");
export const setInputValue = setter(HTMLInputElement, "value");
export const isChecked = getter(HTMLInputElement, "checked");
export const isIndeterminate = getter(HTMLInputElement, "indeterminate");
export const areaValue = getter(HTMLTextAreaElement, "value");
export const setAreaValue = setter(HTMLTextAreaElement, "value");
export const optionsOf = getter(HTMLSelectElement, "options");
export const optionText = getter(HTMLOptionElement, "text");
export const optionValue = getter(HTMLOptionElement, "value");
export const isSelected = getter(HTMLOptionElement, "selected");
export const setSelected = setter(HTMLOptionElement, "selected");
export const isMultiple = getter(HTMLSelectElement, "multiple");
export const isOpen = getter(HTMLDetailsElement, "open");
const FORMS = new Map<string, Getter<any, HTMLFormElement | null>>([
  ["input", getter(HTMLInputElement, "form")],
  ["select", getter(HTMLSelectElement, "form")],
  ["textarea", getter(HTMLTextAreaElement, "form")],
  ["button", getter(HTMLButtonElement, "form")],
]);

/** The form that an element belongs to. */
export const formOf = (node: Element): HTMLFormElement | null =>
  (FORMS.get(localName(node))?.(node) ?? closest(node, "form")) as HTMLFormElement | null;
export const selectInput = method(HTMLInputElement, "select");
export const stepUp = method(HTMLInputElement, "stepUp");
export const closeDialog = method(HTMLDialogElement, "close");
export const requestSubmit = method(HTMLFormElement, "requestSubmit");
const LABELS = new Map<string, Getter<any, NodeListOf<HTMLLabelElement> | null>>([
  ["input", getter(HTMLInputElement, "labels")],
  ["select", getter(HTMLSelectElement, "labels")],
  ["textarea", getter(HTMLTextAreaElement, "labels")],
]);

/** The labels of a form control. */
export const labelsOf = (node: Element): Element[] =>
  Array.from(LABELS.get(localName(node))?.(node) ?? []);

const selectInputRange = method(HTMLInputElement, "setSelectionRange");
const selectAreaRange = method(HTMLTextAreaElement, "setSelectionRange");

export function selectRange(
  node: HTMLInputElement | HTMLTextAreaElement,
  start: number,
  end: number,
): void {
  if (localName(node) === "input") selectInputRange(node as HTMLInputElement, start, end);
  else selectAreaRange(node as HTMLTextAreaElement, start, end);
}

// --- events -----------------------------------------------------------------------------------------

export const eventType = getter(Event, "type");
export const eventPath = method(Event, "composedPath");
export const prevent = method(Event, "preventDefault");
export const stopHere = method(Event, "stopImmediatePropagation");
export const dispatch = method(EventTarget, "dispatchEvent");
export const listen = method(EventTarget, "addEventListener");
export const unlisten = method(EventTarget, "removeEventListener");

/** The computed style, by this window's function. */
export const styleOf = (node: Element): CSSStyleDeclaration => getComputedStyle(node);

// --- the tree that a person sees: shadow roots, slots and frames of the same origin are part of it ---

const isFrame = (node: Element): node is HTMLIFrameElement => localName(node) === "iframe";

/** The document in a frame; undefined for one of another origin. */
export function framedDocument(node: Element): Document | undefined {
  return isFrame(node) ? (contentDocument(node) ?? undefined) : undefined;
}

/** What is shown in an element, in order. */
export function* childrenOf(node: Node): Generator<Node> {
  if (isElement(node)) {
    const root = shadowRoot(node);
    const page = framedDocument(node);
    if (root ?? page) {
      yield* siblings(root ?? documentElement(page!));
      return;
    }
    if (localName(node) === "details" && !isOpen(node as HTMLDetailsElement)) {
      for (const child of siblings(node)) {
        if (isElement(child) && localName(child) === "summary") yield child;
      }
      return;
    }
    if (localName(node) === "slot") {
      const nodes = assigned(node as HTMLSlotElement);
      if (nodes.length > 0) {
        yield* nodes;
        return;
      }
    }
  }
  yield* siblings(node);
}

function* siblings(node: Node | null): Generator<Node> {
  if (!node) return;
  for (let child = firstChild(node); child; child = nextSibling(child)) yield child;
}

/** The element around another, out of slots and shadow roots, up to its document's root. */
export function parentOf(node: Node): Element | null {
  const slot = isElement(node) ? assignedSlot(node) : null;
  const parent = slot ?? parentNode(node);
  if (parent && isElement(parent)) return parent;
  return parent && isShadow(parent) ? hostOf(parent) : null;
}

/** Whether an element is another, or is in it. */
export function isWithin(node: Element | null, outer: Element): boolean {
  for (let at = node; at; at = parentOf(at)) if (at === outer) return true;
  return false;
}

/** The element with an id, in the same document or shadow root. */
export function sameTreeById(node: Element, id: string): Element | null {
  const root = rootNode(node);
  return isShadow(root) ? elementByIdInShadow(root, id) : elementById(root as Document, id);
}

/** The innermost element that has the focus. */
export function focused(page: Document): Element | null {
  let at = activeElement(page);
  for (;;) {
    const root = at && shadowRoot(at);
    const framed = at && framedDocument(at);
    const inner = root ? activeInShadow(root) : framed && activeElement(framed);
    if (!inner || inner === at) return at;
    at = inner;
  }
}

/** The innermost element at a point of the window of a document. */
export function hit(page: Document, x: number, y: number): Element | null {
  let at = elementAt(page, x, y);
  for (;;) {
    const root = at && shadowRoot(at);
    const inner = root && elementAtInShadow(root, x, y);
    if (!inner || inner === at) break;
    at = inner;
  }
  const framed = at && framedDocument(at);
  if (!framed) return at;
  const { left, top } = boxOf(at!);
  return hit(framed, x - left, y - top) ?? at;
}
