/** The panel of the traffic: live, or that of a recorded file. */
import { element, saveFile } from "../views_bundle.js";
import type { DevHost } from "./host.js";
import { badge, button, jsonBlock, lasted, notes, plural } from "./parts.js";
import { readRecord, TrafficLog, writeRecord, type Recorded, type Row } from "./traffic_log.js";
import { VirtualList } from "./virtual_list.js";

const arrowOf = ({ from, leg, name }: Recorded): string => {
  const other = leg === "server" ? name : `View ${name}`;
  return from === "host" ? `host → ${other}` : `${other} → host`;
};

function fill(row: HTMLElement, { entry, method, kind, ms, problems }: Row): void {
  const at = entry.time.slice(11, 23);
  const bytes = entry.left_out === undefined ? "" : ` (${entry.left_out} bytes, not kept)`;
  row.dataset.leg = entry.leg;
  row.classList.toggle("bad", problems.length > 0);
  row.append(
    element("span", { class: "time", text: at }),
    element("span", { class: "way", text: arrowOf(entry) }),
    element("span", {
      class: "kind",
      text: kind === "answer" ? "↩" : kind === "request" ? "?" : "",
    }),
    element("span", { class: "what", text: `${method || kind}${bytes}` }),
    element("span", { class: "ms", text: ms === undefined ? "" : `${ms} ms` }),
    element("span", { class: "wrong", text: problems.join("; ") }),
  );
}

export class Traffic {
  readonly #live = new TrafficLog();
  readonly #onCount: (bad: number) => void;
  readonly #list: VirtualList<Row>;
  readonly #detail = element("div", { class: "detail" });
  readonly #search = element("input", {
    type: "search",
    placeholder: "Search",
    "aria-label": "Search messages",
  });
  readonly #leg = element("select", { "aria-label": "Which messages" });
  readonly #bad = element("input", { type: "checkbox" });
  readonly #about = element("span", { class: "quiet", role: "status" });
  readonly #wrong = element("span", { class: "problem", role: "alert" }); // with an opened file
  readonly #back: HTMLButtonElement;
  #log = this.#live; // what is shown
  #isDue = false;

  /** `onCount` is called with how many messages have problems. */
  constructor(host: DevHost, place: HTMLElement, onCount: (bad: number) => void) {
    this.#onCount = onCount;
    for (const [value, text] of [
      ["", "Both legs"],
      ["server", "Server"],
      ["view", "View"],
    ]) {
      this.#leg.append(element("option", { value: value!, text: text! }));
    }
    this.#list = new VirtualList("Messages", fill, (row) => this.#showDetail(row));
    const file = element("input", { type: "file", accept: ".jsonl,.json,.txt", hidden: "" });
    file.addEventListener("change", () => void this.#open(file));
    this.#back = button("Back to live", () => this.#show(this.#live));
    this.#back.hidden = true;
    const bar = element(
      "div",
      { class: "row filters" },
      this.#search,
      this.#leg,
      element("label", { class: "row" }, this.#bad, "Problems only"),
      button("Export", () => {
        const content = [writeRecord(this.#log.rows)];
        saveFile("traffic.jsonl", new Blob(content, { type: "application/jsonl" }));
      }),
      button("Open a record…", () => file.click()),
      file,
      button("Clear", () => {
        this.#log.clear();
        this.#due();
      }),
      this.#back,
      this.#about,
      this.#wrong,
    );
    bar.addEventListener("input", () => this.#due());
    place.append(bar, element("div", { class: "split" }, this.#list.element, this.#detail));
    host.onLog(
      "traffic",
      (entries: Recorded[]) => {
        this.#live.add(entries);
        this.#due();
      },
      () => {
        this.#live.clear();
        this.#due();
      },
    );
  }

  /** Draw once for all that arrives in a frame. */
  #due(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  #draw(): void {
    const rows = this.#log.filtered({
      text: this.#search.value,
      leg: this.#leg.value as "" | "server" | "view",
      isBad: this.#bad.checked,
    });
    this.#list.show(rows);
    const of = rows.length === this.#log.rows.length ? "" : ` of ${this.#log.rows.length}`;
    this.#about.textContent = `${rows.length}${of} messages`;
    this.#onCount(this.#live.bad);
  }

  #show(log: TrafficLog): void {
    this.#log = log;
    this.#wrong.textContent = "";
    this.#back.hidden = log === this.#live;
    this.#detail.replaceChildren();
    this.#due();
  }

  async #open(input: HTMLInputElement): Promise<void> {
    const [file] = input.files ?? [];
    if (!file) return;
    const log = new TrafficLog();
    const { messages, bad } = readRecord(await file.text());
    log.add(messages);
    input.value = "";
    this.#show(log);
    if (bad.length > 0) {
      const count = plural(bad.length, "line");
      this.#wrong.textContent = `${count} left out: no message of a record, first line ${bad[0]}`;
    }
    if (log.rows[0]) this.#list.choose(log.rows[0]);
    this.#list.element.focus();
  }

  #showDetail(row: Row): void {
    const { entry, pair, ms, problems } = row;
    const parts: Node[] = [
      element(
        "p",
        { class: "row" },
        badge(row.kind, problems.length > 0 ? "bad" : ""),
        element("span", { text: arrowOf(entry) }),
        ...lasted(ms),
      ),
      ...problems.map((text) => element("p", { class: "problem", text })),
      jsonBlock(entry.message ?? entry.text ?? `${entry.left_out} bytes`, "Message"),
    ];
    if (pair) {
      const word = pair.kind === "answer" ? "Its answer" : "Its request";
      parts.push(
        button(`Go to ${word.toLowerCase()}`, () => this.#list.choose(pair)),
        element("h4", { text: word }),
        jsonBlock(pair.entry.message ?? pair.entry.text ?? "", word),
      );
    } else if (row.kind === "request") {
      parts.push(...notes("It has no answer yet."));
    }
    this.#detail.replaceChildren(...parts);
  }

  /** Show what was under way at a moment. */
  reveal(seconds: number, view: string, words: string): void {
    const row = this.#live.underWay(seconds, view, words);
    if (!row) return;
    this.#search.value = this.#leg.value = "";
    this.#bad.checked = false;
    this.#show(this.#live);
    this.#draw();
    this.#list.choose(row);
    this.#list.element.focus();
  }
}
