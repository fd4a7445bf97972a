/**
 * The DOM of a stranger's page, read with the methods of this window: a page that has replaced its
 * own prototypes, or has properties of its own on its elements, is read as it is all the same.
 */

type Getter<Target, Value> = (target: Target) => Value;

/* eslint-disable @typescript-eslint/unbound-method -- they are called with an element */
/* eslint-disable @typescript-eslint/no-deprecated -- for names that no type knows; nothing replaces execCommand */

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
  return (target, value) => {
    Reflect.apply(set!, target, [value]);
  };
}

type Method = (...given: never[]) => unknown;

function method<Called extends Method>(
  called: Called,
): (target: EventTarget | Event, ...given: Parameters<Called>) => ReturnType<Called> {
  return (target, ...given) => Reflect.apply(called, target, given) as ReturnType<Called>;
}

// --- nodes ------------------------------------------------------------------------------------------

export const nodeType = getter(Node, "nodeType");
export const firstChild = getter(Node, "firstChild");
export const nextSibling = getter(Node, "nextSibling");
export const parentNode = getter(Node, "parentNode");
export const ownerDocument = getter(Node, "ownerDocument");
export const isConnected = getter(Node, "isConnected");
export const textContent = getter(Node, "textContent");
export const rootNode = method<Node["getRootNode"]>(Node.prototype.getRootNode);
export const contains = method<Node["contains"]>(Node.prototype.contains);
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
export const firstElement = getter(Element, "firstElementChild");
export const childCount = getter(Element, "childElementCount");
export const scrollLeft = getter(Element, "scrollLeft");
export const scrollTop = getter(Element, "scrollTop");
export const scrollWidth = getter(Element, "scrollWidth");
export const clientWidth = getter(Element, "clientWidth");
export const clientHeight = getter(Element, "clientHeight");
export const assignedSlot = getter(Element, "assignedSlot");
export const attribute = method<Element["getAttribute"]>(Element.prototype.getAttribute);
export const boxOf = method<Element["getBoundingClientRect"]>(
  Element.prototype.getBoundingClientRect,
);
export const isRendered = method<Element["checkVisibility"]>(Element.prototype.checkVisibility);
export const matches = method<Element["matches"]>(Element.prototype.matches);
export const closest = method<(selector: string) => Element | null>(Element.prototype.closest);
export const queryAll = method<(selector: string) => NodeListOf<Element>>(
  Element.prototype.querySelectorAll,
);
export const query = method<(selector: string) => Element | null>(Element.prototype.querySelector);
export const boxesOf = method<Element["getClientRects"]>(Element.prototype.getClientRects);
const animationsOf = method<Element["getAnimations"]>(Element.prototype.getAnimations);
export const animationsIn = (node: Element): Animation[] => animationsOf(node, { subtree: true });
export const scrollTo = method<Element["scrollIntoView"]>(Element.prototype.scrollIntoView);
export const elementById = method<(id: string) => Element | null>(
  Document.prototype.getElementById,
);
export const elementByIdInShadow = method<(id: string) => Element | null>(
  DocumentFragment.prototype.getElementById,
);
export const has = (node: Element, name: string): boolean => attribute(node, name) !== null;
export const isHtml = (node: Element): node is HTMLElement =>
  namespaceOf(node) === "http://www.w3.org/1999/xhtml";
const namespaceOf = getter(Element, "namespaceURI");

export const assigned = method<HTMLSlotElement["assignedNodes"]>(
  HTMLSlotElement.prototype.assignedNodes,
);
export const contentDocument = getter(HTMLIFrameElement, "contentDocument");
export const labelControl = getter(HTMLLabelElement, "control");
export const isEditable = getter(HTMLElement, "isContentEditable");
export const tabIndex = getter(HTMLElement, "tabIndex");
export const focus = method<HTMLElement["focus"]>(HTMLElement.prototype.focus);
export const click = method<HTMLElement["click"]>(HTMLElement.prototype.click);
export const innerText = getter(HTMLElement, "innerText");

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
export const activeElement = getter(Document, "activeElement");
export const activeInShadow = getter(ShadowRoot, "activeElement");
export const elementAt = method<Document["elementFromPoint"]>(Document.prototype.elementFromPoint);
export const elementAtInShadow = method<ShadowRoot["elementFromPoint"]>(
  ShadowRoot.prototype.elementFromPoint,
);
const selectionOf = method<Document["getSelection"]>(Document.prototype.getSelection);
const { selectAllChildren, collapseToEnd } = Selection.prototype;

export function selectAllIn(node: Element): void {
  const selection = selectionOf(ownerDocument(node)!);
  if (selection) Reflect.apply(selectAllChildren, selection, [node]);
}

export function caretToEndOf(node: Element): void {
  selectAllIn(node);
  const selection = selectionOf(ownerDocument(node)!);
  if (selection) Reflect.apply(collapseToEnd, selection, []);
}

export const execute = method<Document["execCommand"]>(Document.prototype.execCommand);
export const animations = method<Document["getAnimations"]>(Document.prototype.getAnimations);
export const countElements = (page: Document): number => elementsByTag(page, "*").length;
const elementsByTag = method<(name: string) => HTMLCollectionOf<Element>>(
  Document.prototype.getElementsByTagName,
);

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
export const selectInput = method<HTMLInputElement["select"]>(HTMLInputElement.prototype.select);
export const stepUp = method<HTMLInputElement["stepUp"]>(HTMLInputElement.prototype.stepUp);
export const closeDialog = method<HTMLDialogElement["close"]>(HTMLDialogElement.prototype.close);
export const requestSubmit = method<HTMLFormElement["requestSubmit"]>(
  HTMLFormElement.prototype.requestSubmit,
);
const LABELS = new Map<string, Getter<any, NodeListOf<HTMLLabelElement> | null>>([
  ["input", getter(HTMLInputElement, "labels")],
  ["select", getter(HTMLSelectElement, "labels")],
  ["textarea", getter(HTMLTextAreaElement, "labels")],
]);

/** The labels of a form control. */
export const labelsOf = (node: Element): Element[] =>
  Array.from(LABELS.get(localName(node))?.(node) ?? []);

export const selectRange = {
  input: method<HTMLInputElement["setSelectionRange"]>(
    HTMLInputElement.prototype.setSelectionRange,
  ),
  textarea: method<HTMLTextAreaElement["setSelectionRange"]>(
    HTMLTextAreaElement.prototype.setSelectionRange,
  ),
};

// --- events -----------------------------------------------------------------------------------------

export const eventType = getter(Event, "type");
export const eventPath = method<Event["composedPath"]>(Event.prototype.composedPath);
export const prevent = method<Event["preventDefault"]>(Event.prototype.preventDefault);
export const stopHere = method<Event["stopImmediatePropagation"]>(
  Event.prototype.stopImmediatePropagation,
);
export const dispatch = method<EventTarget["dispatchEvent"]>(EventTarget.prototype.dispatchEvent);
export const listen = method<EventTarget["addEventListener"]>(
  EventTarget.prototype.addEventListener,
);
export const unlisten = method<EventTarget["removeEventListener"]>(
  EventTarget.prototype.removeEventListener,
);

/* eslint-enable @typescript-eslint/unbound-method */
/* eslint-enable @typescript-eslint/no-deprecated */

/** The computed style, by this window's function; for a pseudo-element such as `::before`, too. */
export const styleOf = (node: Element, pseudo?: string): CSSStyleDeclaration =>
  getComputedStyle(node, pseudo);

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
      const nodes = assigned(node);
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
  return isShadow(root) ? elementByIdInShadow(root, id) : elementById(root, id);
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
