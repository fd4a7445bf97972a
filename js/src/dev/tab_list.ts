/** Tabs as the ARIA practices have them: arrows choose, and only the chosen one is in the tab order. */
import { element } from "../views_bundle.js";

export class TabList {
  readonly #tabs = new Map<string, { tab: HTMLElement; panel: HTMLElement; count: HTMLElement }>();
  readonly #list: HTMLElement;
  readonly #onChosen: (name: string) => void;
  chosen = "";

  /** `panels` are the elements that the tabs show, by the name that a link has for them. */
  constructor(
    list: HTMLElement,
    panels: Record<string, HTMLElement>,
    onChosen: (name: string) => void,
  ) {
    this.#list = list;
    this.#onChosen = onChosen;
    for (const [name, panel] of Object.entries(panels)) {
      const count = element("span", { class: "count" });
      const about = { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": panel.id };
      const tab = element("button", about, panel.dataset.title ?? name, count);
      tab.addEventListener("click", () => this.choose(name));
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
      this.#tabs.set(name, { tab, panel, count });
      list.append(tab);
    }
    list.addEventListener("keydown", (event) => this.#onKey(event));
    this.choose([...this.#tabs.keys()][0]!);
  }

  choose(name: string): void {
    if (!this.#tabs.has(name)) return;
    this.chosen = name;
    for (const [other, { tab, panel }] of this.#tabs) {
      tab.setAttribute("aria-selected", String(other === name));
      tab.tabIndex = other === name ? 0 : -1;
      panel.hidden = other !== name;
    }
    this.#onChosen(name);
  }

  /** Show a number beside a tab's name; `isBad`: of something that went wrong. */
  setCount(name: string, count: number, isBad = false): void {
    const { count: place } = this.#tabs.get(name)!;
    place.textContent = count > 0 ? ` ${count}` : "";
    place.classList.toggle("bad", isBad && count > 0);
  }

  #onKey(event: KeyboardEvent): void {
    const names = [...this.#tabs.keys()];
    const at = names.indexOf(this.chosen);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1 + names.length,
      Home: 0,
      End: names.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.choose(names[to % names.length]!);
    this.#list.querySelector<HTMLElement>('[aria-selected="true"]')?.focus();
  }
}
