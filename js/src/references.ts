/**
 * The references of elements: a letter and a number, given once for each element and never again, and
 * what was last said about each.
 */
import { letterOf } from "./roles.js";

/** What a model has read of an element. */
export interface Shown {
  role: string;
  name: string;
}

export class References {
  readonly #refs = new WeakMap<Element, string>();
  readonly #elements = new Map<string, WeakRef<Element>>();
  readonly #shown = new Map<string, Shown>();
  readonly #collected = new FinalizationRegistry((ref: string) => {
    this.#elements.delete(ref);
    this.#shown.delete(ref);
  });
  #count = 0;

  /** The reference of an element, a new one if it has none. */
  of(node: Element, role: string): string {
    let ref = this.#refs.get(node);
    if (ref === undefined) {
      ref = `${letterOf(role)}${(this.#count += 1)}`;
      this.#refs.set(node, ref);
      this.#elements.set(ref, new WeakRef(node));
      this.#collected.register(node, ref);
    }
    return ref;
  }

  /** An element is shown so from now on. */
  show(node: Element, { role, name }: Shown): void {
    this.#shown.set(this.of(node, role), { role, name });
  }

  /** What was last said about an element. */
  shown(ref: string): Shown | undefined {
    return this.#shown.get(ref);
  }

  /** The element; undefined for a reference that was never given, null if it is gone for ever. */
  find(ref: string): Element | null | undefined {
    const held = this.#elements.get(ref)?.deref();
    if (held) return held;
    return /^[a-z][1-9]\d*$/.test(ref) && Number(ref.slice(1)) <= this.#count ? null : undefined;
  }
}
