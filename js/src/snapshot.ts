/**
 * What a page shows, as a list of nodes: what can be used, and the text that a person needs to choose
 * among it. Runs of elements that are alike are cut short and counted, and so is what is scrolled out
 * of sight where there is much of it. The work is bounded, whatever the page has in it.
 */
import {
  identify,
  isLabelOfSeen,
  isNestedGroup,
  isUsableCell,
  MAX_COLUMNS,
  usedRoleOf,
} from "./identity.js";
import type { Look } from "./messages.js";
import { MAX_NAME, MAX_VALUE, nameOf, visibleText } from "./names.js";
import {
  attribute,
  characters,
  childrenOf,
  countElements,
  documentElement,
  focused,
  has,
  isElement,
  isRendered,
  isText,
  isWithin,
  localName,
  optionsOf,
  optionText,
  ownerDocument,
  parentOf,
  query,
  queryAll,
} from "./native_dom.js";
import type { References } from "./references.js";
import {
  isClickable,
  isGroup,
  isNamedByContent,
  isNamedGroup,
  isReport,
  isSecret,
  isSelect,
  isWidget,
  levelOf,
  roleOf,
  statesOf,
  valueOf,
  PRIVATE,
} from "./roles.js";
import { runAt, type Run } from "./runs.js";
import { Sight } from "./sight.js";
import { contradict, MAX_RAW, shorten } from "./texts.js";

const MAX_NODES = 400; // that are shown
const MANY_NODES = 120; // after which nothing is shown that is out of sight
const MAX_VISITED = 40_000; // elements and texts that are looked at
const MAX_TIME = 700; // milliseconds
const MAX_FOUND = 60;
const MAX_COUNTED = 5000; // elements of a run that are looked at one by one
const MAX_DEPTH = 300; // elements in each other
const MAX_OPTIONS = 12;
const MAX_BESIDE = 3; // controls that a text may be about
const PICTURES = ["img", "canvas", "video", "audio"];
const UNREAD = new Set(["script", "style", "template", "noscript", "head", "title", "option"]);

/** One line of a snapshot. */
export interface SnapshotNode {
  depth: number;
  role: string;
  name: string;
  ref?: string;
  value?: string;
  states?: string[];
  level?: number;
  href?: string;
  /** Whether what is typed there is shown to nobody. */
  secret?: boolean;
  size?: [width: number, height: number];
  /** How many there are `of` what; for `more`, how many are not shown, and where. */
  count?: number;
  of?: string;
  under?: string;
}

export interface Snapshot {
  nodes: SnapshotNode[];
  actionable: number;
  left_out: number;
  private: number;
  offscreen: number;
  /** Whether it is all of a dialog, behind which nothing can be used. */
  modal: boolean;
}

/** A node before it is known how deep it is. */
interface Item {
  node: SnapshotNode;
  element?: Element;
  /** The block that a text is in, and all of that. */
  block?: Element;
  text?: string;
  /** Whether it is scrolled out of sight. */
  isOff?: boolean;
  children: Item[];
}

/** What is known of everything in an element. */
interface Context {
  parent: Item;
  block: Element;
  depth: number;
  /** The text in it is part of a name that was shown already. */
  isNamed: boolean;
}

class Ended extends Error {}

class Walk {
  readonly root: Item = { node: { depth: 0, role: "", name: "" }, children: [] };
  readonly #sight = new Sight();
  readonly #refs: References;
  readonly #active: Element | null;
  readonly #until: number;
  readonly #isWhole: boolean;
  readonly #textLimit: number;
  visited = 0;
  shown = 0;
  private = 0;

  /** `isWhole`: nothing is cut short. */
  constructor(page: Document, refs: References, isWhole: boolean) {
    this.#refs = refs;
    this.#active = focused(page);
    this.#isWhole = isWhole;
    this.#until = performance.now() + MAX_TIME;
    this.#textLimit = isWhole ? 2 * MAX_VALUE : MAX_VALUE;
  }

  /** Read an element; false if there was too much in it. */
  start(node: Element): boolean {
    try {
      this.#visit(node, { parent: this.root, block: node, depth: 0, isNamed: false });
      return true;
    } catch (error) {
      if (error instanceof Ended) return false;
      throw error;
    }
  }

  #count(): void {
    this.visited += 1;
    const isLate = this.visited % 64 === 0 && performance.now() > this.#until;
    if (isLate || this.visited > MAX_VISITED) throw new Ended();
  }

  #add(parent: Item, node: Omit<SnapshotNode, "depth">, element?: Element): Item {
    if (!this.#isWhole && this.shown >= MAX_NODES) throw new Ended();
    this.shown += 1;
    const item: Item = { node: { depth: 0, ...node }, children: [], ...(element && { element }) };
    parent.children.push(item);
    return item;
  }

  // --- elements -------------------------------------------------------------------------------------

  #visit(node: Element, context: Context): void {
    this.#count();
    const name = localName(node);
    if (UNREAD.has(name) || context.depth > MAX_DEPTH) return;
    if (attribute(node, PRIVATE) !== null) {
      this.#addPrivate(node, context.parent);
      return;
    }
    const perceived = this.#sight.perceive(node);
    if (perceived === "nothing") return;
    const inside = { ...context, depth: context.depth + 1, block: this.#blockOf(node, context) };
    if (perceived === "inside" || name === "html" || name === "body") {
      this.#visitChildren(node, inside);
      return;
    }
    const item = this.#describe(node, context);
    if (item) inside.parent = item;
    if (isSelect(node)) this.#addOptions(node, item!);
    else if (name !== "img") {
      const isNamed = context.isNamed || this.#isPartOfName(node, item?.node.role ?? "");
      this.#visitChildren(node, { ...inside, isNamed });
    }
  }

  /** Whether the text in an element is in a line already: its own, its control's or its group's. */
  #isPartOfName(node: Element, role: string): boolean {
    const name = localName(node);
    if (name === "label") return isLabelOfSeen(node as HTMLLabelElement, this.#sight);
    if (name === "caption" || name === "legend" || isHeadRow(node)) return true;
    return isNamedByContent(role) || isWrittenInto(role);
  }

  #blockOf(node: Element, { block }: Context): Element {
    const { display } = this.#sight.style(node);
    return display.startsWith("inline") || display === "contents" ? block : node;
  }

  /** Add the line of an element, if it has one. */
  #describe(node: Element, { parent, isNamed }: Context): Item | undefined {
    const role = usedRoleOf(node, this.#sight);
    if (role === "row") return this.#describeRow(node, parent);
    if (isGroup(role)) return this.#describeGroup(node, role, parent);
    if (PICTURES.includes(role)) return this.#describePicture(node, parent, isNamed);
    if (role === "heading" || isReport(role) || isNamedGroup(role)) {
      if (isNamed && role === "heading" && !isClickable(node, this.#sight)) return undefined;
      return this.#describeText(node, role, parent);
    }
    const isActionable = isWidget(role) || isUsableCell(node, role);
    return isActionable ? this.#describeUsable(node, role, parent) : undefined;
  }

  #describeText(node: Element, role: string, parent: Item): Item | undefined {
    const { name } = identify(node, this.#sight, role);
    const value = isReport(role) ? valueOf(node, role, this.#sight) : undefined;
    if (!name && !value) return undefined;
    const level = role === "heading" ? levelOf(node) : undefined;
    const states = statesOf(node, role, this.#active);
    const described = { role, name, ...given({ level, value, states }) };
    return role === "heading" && isClickable(node, this.#sight)
      ? this.#use(parent, node, described)
      : this.#add(parent, described, node);
  }

  #describeUsable(node: Element, role: string, parent: Item): Item | undefined {
    const { name } = identify(node, this.#sight, role);
    const value = valueOf(node, role, this.#sight);
    if (role === "clickable" && !name && !isWorthPressing(node)) return undefined;
    const states = statesOf(node, role, this.#active);
    if (this.#sight.isFaint(node)) states.push("faint");
    const isWritten = isWrittenInto(role) && value === undefined;
    const shown = isWritten ? visibleText(node, this.#sight, MAX_VALUE) : value;
    const item = this.#use(parent, node, {
      role,
      name,
      ...given({
        value: shown === undefined ? undefined : shorten(shown, MAX_VALUE),
        states,
        href: role === "link" ? hrefOf(node) : undefined,
        secret: isSecret(node, this.#sight) || undefined,
      }),
    });
    if (isNamedByContent(role)) this.#addContradiction(node, item);
    return item;
  }

  /** What is written on an element, where its name says something else. */
  #addContradiction(node: Element, item: Item): void {
    const text = visibleText(node, this.#sight, MAX_NAME, isNestedGroup);
    if (contradict(item.node.name, text)) this.#add(item, { role: "text", name: text });
  }

  /** A thing that can be used, with its reference. */
  #use(parent: Item, node: Element, described: Omit<SnapshotNode, "depth">): Item {
    const ref = this.#refs.of(node, described.role);
    const item = this.#add(parent, { ...described, ref }, node);
    item.isOff = this.#isOutOfSight(node);
    return item;
  }

  #describePicture(node: Element, parent: Item, isNamed: boolean): Item | undefined {
    const { role, name } = identify(node, this.#sight);
    const { width, height } = this.#sight.box(node);
    if (role !== "img") {
      const size: [number, number] = [Math.round(width), Math.round(height)];
      return this.#use(parent, node, { role, name, size });
    }
    const isUsed = isClickable(node, this.#sight);
    if (isNamed || (!name && !isUsed)) return undefined;
    return isUsed
      ? this.#use(parent, node, { role, name })
      : this.#add(parent, { role, name }, node);
  }

  // --- groups ---------------------------------------------------------------------------------------

  #describeGroup(node: Element, role: string, parent: Item): Item {
    const name = nameOf(node, role, this.#sight);
    const states = statesOf(node, role, this.#active);
    const ref = this.#refs.of(node, role);
    const item = this.#add(parent, { role, name, ref, ...given({ states }) }, node);
    if (role === "table" || role === "grid" || role === "treegrid") {
      const rows = Array.from(queryAll(node, "tr, [role=row]")).filter((row) => isRendered(row));
      const heads = rows.filter((row) => columnsOf(row).length > 0).slice(0, 1);
      const columns = heads.flatMap(columnsOf).slice(0, MAX_COLUMNS);
      const texts = columns.map((cell) => visibleText(cell, this.#sight, MAX_NAME / 2));
      const said = Number(attribute(node, "aria-rowcount"));
      item.node.count = said > rows.length ? said : rows.length - heads.length;
      item.node.of = "row";
      if (texts.some(Boolean)) item.node.value = shorten(texts.join(", "), MAX_VALUE);
    } else if (isSelect(node)) {
      item.node.value = shorten(valueOf(node, role, this.#sight) ?? "", MAX_VALUE);
    }
    return item;
  }

  /** The row with the names of the columns is part of its table's line. */
  #describeRow(node: Element, parent: Item): Item | undefined {
    if (isHeadRow(node)) return undefined;
    const { role, name } = identify(node, this.#sight);
    const states = statesOf(node, role, this.#active);
    const ref = this.#refs.of(node, role);
    return this.#add(parent, { role, name, ref, ...given({ states }) }, node);
  }

  #addOptions(node: HTMLSelectElement, item: Item): void {
    const options = Array.from(optionsOf(node)).filter((option) => !has(option, PRIVATE));
    if (this.#isWhole) {
      for (const option of options) {
        this.#count();
        const name = shorten(optionText(option), MAX_NAME);
        const states = statesOf(option, "option", this.#active);
        this.#use(item, option, { role: "option", name, ...given({ states }) });
      }
      return;
    }
    const names = options.slice(0, MAX_OPTIONS).map((option) => shorten(optionText(option), 40));
    this.#add(item, { role: "options", name: shorten(names.join(", "), 2 * MAX_NAME) });
    if (options.length > MAX_OPTIONS)
      this.#addMore(item, node, options.length - MAX_OPTIONS, "option");
  }

  #addMore(parent: Item, container: Element, count: number, of: string): void {
    const { ref, role } = parent.node;
    const under =
      ref && isGroup(role) ? ref : this.#refs.of(container, roleOf(container) || "list");
    if (parent.element === container) parent.node.ref ??= under;
    this.#add(parent, { role: "more", name: "", count, of, under });
  }

  #addPrivate(node: Element, parent: Item): void {
    if (!isRendered(node)) return;
    const count = 1 + queryAll(node, "*").length;
    this.private += count;
    this.#add(parent, { role: "private", name: "", count });
  }

  // --- what is in an element ------------------------------------------------------------------------

  #visitChildren(node: Element, context: Context): void {
    const children = Array.from(childrenOf(node));
    let unseen = 0;
    for (let index = 0; index < children.length; index += 1) {
      const child = children[index]!;
      if (isText(child)) this.#addText(child, node, context);
      if (!isElement(child)) continue;
      if (this.#isOutOfReach(child)) {
        unseen += 1;
        continue;
      }
      const run = this.#isWhole ? undefined : runAt(children, index);
      if (!run) {
        this.#visit(child, context);
        continue;
      }
      index = this.#visitRun(children, index, run, context, node);
    }
    if (unseen > 0) this.#addMore(context.parent, node, unseen, "thing");
  }

  /** Show the first few of a run and count the rest; returns the index of its last element. */
  #visitRun(
    children: Node[],
    start: number,
    { end, to, of }: Run,
    context: Context,
    container: Element,
  ): number {
    let index = start;
    for (let before = this.shown, seen = 0; index < end && seen < to; index += 1) {
      const child = children[index]!;
      if (isElement(child)) this.#visit(child, context);
      if (this.shown > before) seen += 1;
      before = this.shown;
    }
    let count = 0;
    for (let at = index; at < end; at += 1) {
      const child = children[at]!;
      if (isElement(child) && (at - index > MAX_COUNTED || isRendered(child))) count += 1;
    }
    if (count > 0) this.#addMore(context.parent, container, count, of);
    return end - 1;
  }

  /** Texts of one block are one line. */
  #addText(text: Text, node: Element, { parent, block, isNamed }: Context): void {
    this.#count();
    const raw = characters(text);
    if (isNamed || !this.#sight.isReadable(node)) return;
    const last = parent.children.at(-1);
    const before = last?.block === block ? last : undefined;
    if (!before && !shorten(raw, 1)) return;
    const whole = `${before?.text ?? ""}${raw}`.slice(0, MAX_RAW);
    const name = shorten(whole, this.#textLimit);
    if (before) Object.assign(before, { text: whole }).node.name = name;
    else Object.assign(this.#add(parent, { role: "text", name }), { block, text: whole });
  }

  #isOutOfSight(node: Element): boolean {
    const { top, bottom } = this.#sight.box(node);
    if (top === bottom) return false; // such as an option of a list that is closed
    const { height } = this.#sight.window(documentElement(ownerDocument(node)!));
    return bottom <= 0 || top >= height;
  }

  /** Whether it is left out because it is out of sight, and there is much that is not. */
  #isOutOfReach(node: Element): boolean {
    return !this.#isWhole && this.shown >= MANY_NODES && this.#isOutOfSight(node);
  }
}

// --- what is in a line ------------------------------------------------------------------------------

/** Whether something without a text that reacts to clicks is not just around something else. */
const isWorthPressing = (node: Element): boolean =>
  has(node, "onclick") || has(node, "tabindex") || query(node, "*") === null;

/** Whether the text in it is its value. */
const isWrittenInto = (role: string): boolean =>
  ["textbox", "searchbox", "combobox", "spinbutton"].includes(role);

function columnsOf(row: Element): Element[] {
  return Array.from(childrenOf(row))
    .filter(isElement)
    .filter((cell) => roleOf(cell) === "columnheader");
}

/** Whether a row has the names of columns, and nothing else. */
function isHeadRow(node: Element): boolean {
  if (localName(node) !== "tr" && attribute(node, "role") !== "row") return false;
  const cells = Array.from(childrenOf(node)).filter(isElement);
  return cells.length > 0 && columnsOf(node).length === cells.length;
}

function hrefOf(node: Element): string | undefined {
  const href = attribute(node, "href")?.trim().slice(0, MAX_NAME);
  return href && !href.startsWith("#") && !/^javascript:/i.test(href) ? href : undefined;
}

/** The members that have something in them. */
function given<Members extends object>(members: Members): Partial<Members> {
  const found = Object.entries(members).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : value !== undefined,
  );
  return Object.fromEntries(found) as Partial<Members>;
}

// --- the whole ----------------------------------------------------------------------------------------

/** What a page shows: see `Look`. `under` is the element that is meant. Also returns what was read. */
export function snapshot(
  page: Document,
  refs: References,
  { find }: Pick<Look, "find">,
  under?: Element,
): { snapshot: Snapshot; read: Element[] } {
  const walk = new Walk(page, refs, Boolean(find) || under !== undefined);
  const root = documentElement(page);
  const dialog = under ? null : query(root, "dialog:modal");
  const isWhole = walk.start(under ?? dialog ?? root);
  const found = find ? matching(walk.root, find.toLowerCase()) : walk.root;
  const all = flatten(found.children);
  const kept = all.slice(0, MAX_NODES);
  const used = kept.filter(({ node: { ref } }) => ref !== undefined);
  for (const { node, element } of used) refs.show(element!, node);
  const unread = isWhole ? 0 : Math.max(1, countElements(page) - walk.visited);
  return {
    snapshot: {
      nodes: kept.map(({ node }) => node),
      actionable: used.length,
      left_out: unread + all.length - kept.length,
      private: walk.private,
      offscreen: kept.filter(({ isOff }) => isOff).length,
      modal: dialog !== null,
    },
    read: used.map(({ element }) => element!),
  };
}

function flatten(items: Item[], depth = 0): Item[] {
  return joined(items).flatMap((item) => {
    item.node.depth = depth;
    return [item, ...flatten(item.children, depth + 1)];
  });
}

/** Short texts beside each other, in blocks of the same element, are one line. */
function joined(items: Item[]): Item[] {
  const found: Item[] = [];
  for (const item of items) {
    const last = found.at(-1);
    const isCaption = item.node.role === "text" && last && last.node.role !== "text";
    if (isCaption && last.node.name === item.node.name) continue; // it says nothing new
    const isBeside = item.block && last?.block && parentOf(item.block) === parentOf(last.block);
    const name = isBeside ? `${last.node.name} · ${item.node.name}` : "";
    if (isBeside && name.length <= MAX_NAME) last.node.name = name;
    else found.push(item);
  }
  return found;
}

/** What can be used beside a text, in the same part of the page: the text may be about it. */
const controlsOf =
  ({ children }: Item) =>
  ({ block }: Item): Item[] => {
    for (let at = block, up = 0; at && up < 2; at = parentOf(at) ?? undefined, up += 1) {
      const around = at;
      const beside = children.filter(
        ({ node, element }) => node.ref && element && isWithin(element, around),
      );
      if (beside.length > 0) return beside.length > MAX_BESIDE ? [] : beside;
    }
    return [];
  };

/** The items that have a text, with what is around them, and what is in those. */
function matching(root: Item, text: string): Item {
  let room = MAX_FOUND;
  const has = ({ node }: Item): boolean =>
    [node.name, node.value, node.href].some((each) => each?.toLowerCase().includes(text));
  const keep = (item: Item): Item | undefined => {
    if (room <= 0) return undefined;
    if (has(item)) {
      room -= 1;
      return item;
    }
    const found = new Set(item.children.filter((each) => has(each)).flatMap(controlsOf(item)));
    const children = item.children
      .map((each) => (found.has(each) ? each : keep(each)))
      .filter((each) => each !== undefined);
    return children.length > 0 ? { ...item, children } : undefined;
  };
  return keep(root) ?? { ...root, children: [] };
}
