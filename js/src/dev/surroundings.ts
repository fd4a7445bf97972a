/** What the View is told about its host and user: the author chooses, on the toolbar. */
import { inlineSize, surroundings, View, type Views } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { byId } from "./parts.js";
import { CONTROLS, type Choices } from "./deep_link.js";
import type { Container } from "./settings.js";

const WIDTHS: Record<string, number> = { phone: 390, tablet: 768, desktop: 1280 };
const BORDERS = 2; // pixels around a View: see inlineSize
const RESIZED_AFTER = 150; // milliseconds without another size

const select = (id: string): HTMLSelectElement => byId(id) as HTMLSelectElement;
const input = (id: string): HTMLInputElement => byId(id) as HTMLInputElement;

export class HostControls {
  readonly #host: DevHost;
  readonly #place = byId("views");
  readonly #dark = matchMedia("(prefers-color-scheme: dark)");
  #container: Container = {}; // of the chosen host
  #placed: Element | null = null; // the View that was given the chosen mode
  #resizing: ReturnType<typeof setTimeout> | undefined;

  /** `onChanged` is called with what the author chose. */
  constructor(host: DevHost, views: Views, onChanged: (choices: Choices) => void) {
    this.#host = host;
    const update = (): void => {
      this.#resize();
      this.send();
      onChanged(this.choices);
    };
    byId("controls").addEventListener("change", update);
    select("mode").addEventListener("change", () => this.#setMode());
    // A View that opens gets the chosen mode; what the user or the View makes of it is then shown.
    host.onPanel("view", (view: { state: string } | null) => {
      const shown = this.#place.querySelector("transom-view:not([hidden])");
      if (view?.state !== "live" || shown === this.#placed) return;
      this.#placed = shown;
      if (select("mode").value !== "") this.#setMode();
    });
    new MutationObserver((changes) => {
      if (!(this.#placed instanceof View) || !changes.some(({ target }) => target === this.#placed))
        return;
      const { mode } = this.#placed;
      select("mode").value = mode === "inline" ? "" : mode;
      onChanged(this.choices);
    }).observe(this.#place, { subtree: true, attributeFilter: ["data-mode"] });
    this.#dark.addEventListener("change", () => this.send());
    new ResizeObserver(() => {
      clearTimeout(this.#resizing);
      this.#resizing = setTimeout(() => {
        this.send();
        views.onResized();
      }, RESIZED_AFTER);
    }).observe(this.#place);
  }

  get choices(): Choices {
    const found = Object.entries(CONTROLS).map(([name, id]) => [name, select(id).value]);
    return Object.fromEntries(found) as Choices;
  }

  /** Choose what a link says. */
  restore(choices: Choices): void {
    for (const [name, id] of Object.entries(CONTROLS)) {
      const value = choices[name as keyof Choices];
      if (value !== undefined) select(id).value = value;
    }
    this.#resize();
    this.send();
  }

  /** Have the room that a known host has for a View, where the author chooses no other. */
  setContainer(container: Container = {}): void {
    if (JSON.stringify(container) === JSON.stringify(this.#container)) return;
    this.#container = container;
    this.#resize();
    this.send();
  }

  #resize(): void {
    const { width, maxWidth, height, maxHeight } = this.#container;
    const { style } = this.#place;
    const px = (length: number | undefined): string => (length ? `${length}px` : "");
    style.width = px(WIDTHS[select("width").value] ?? (width && width + BORDERS));
    style.maxWidth = px(select("width").value ? undefined : maxWidth);
    style.setProperty("--view-height", px(this.#maxHeight ? undefined : height));
    style.setProperty("--view-max-height", px(this.#maxHeight ?? maxHeight));
  }

  get #maxHeight(): number | undefined {
    const value = input("max-height").valueAsNumber;
    return value > 0 ? value : undefined;
  }

  #setMode(): void {
    const mode = select("mode").value;
    const view = this.#place.querySelector("transom-view:not([hidden])");
    if (view instanceof View && view.frame) view.setMode(mode === "" ? "inline" : (mode as "pip"));
  }

  /** Tell the host, which tells its Views. */
  send(): void {
    const { theme, locale, zone } = this.choices;
    const seen = this.#dark.matches ? "dark" : "light";
    const { width, maxHeight: most } = inlineSize(this.#place);
    const { maxWidth, height, maxHeight } = this.#container;
    const isChosen = select("width").value !== "";
    const size: Container = {
      ...(maxWidth && !isChosen ? { maxWidth } : { width }),
      ...(height && !this.#maxHeight
        ? { height }
        : { maxHeight: this.#maxHeight ?? maxHeight ?? most }),
    };
    const inset = Math.max(0, input("safe-area").valueAsNumber || 0);
    this.#host.agent.notify(
      surroundings({
        theme: theme === "light" || theme === "dark" ? theme : seen,
        containerDimensions: size,
        safeAreaInsets: { top: inset, right: inset, bottom: inset, left: inset },
        ...(locale ? { locale } : {}),
        ...(zone ? { timeZone: zone } : {}),
      }),
    );
  }
}
