/** The messages of both legs, without a page: what belongs together, and what is wrong. */
import { isObject, type JsonObject } from "../json.js";

/** A line of a record: `RecordedMessage` in `transom.traffic`. */
export interface Recorded {
  time: string;
  at: number;
  leg: "server" | "view";
  name: string;
  from: "host" | "server" | "view";
  message?: unknown;
  text?: string;
  left_out?: number;
}

export interface Row {
  readonly entry: Recorded;
  readonly kind: "request" | "answer" | "notification" | "other";
  /** Its method; of an answer, that of the request. */
  method: string;
  /** The answer of a request, and the request of an answer. */
  pair?: Row;
  /** Milliseconds from the request to the answer. */
  ms?: number;
  problems: string[];
  /** What a search looks in. It is made when the message comes: a search of 10,000 has no time for it. */
  searched: string;
}

export interface Filter {
  text: string;
  leg: "" | Recorded["leg"];
  /** Only what has a problem. */
  isBad: boolean;
}

const MAX_ROWS = 10_000;
const MAX_SEARCHED = 20_000; // characters of a message
const MAX_WORDS = 200; // characters by which a report is known

/** What a View reports of itself. */
const REPORTS = ["transom/notifications/problem", "notifications/message"];
/** What a View may send before it has said who it is. */
const EARLY = ["ui/initialize", "ping", "transom/notifications/unconnected", ...REPORTS];

/** A value of a stranger as text: it may be an object without a text of its own. */
const wordOf = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "none" : JSON.stringify(value);

function kindOf(message: unknown): Row["kind"] {
  if (!isObject(message)) return "other";
  if (typeof message.method === "string") return "id" in message ? "request" : "notification";
  return "id" in message ? "answer" : "other";
}

/** Whether a line of a file is one of a record. */
export const isRecorded = (value: unknown): value is Recorded =>
  isObject(value) &&
  typeof value.time === "string" &&
  typeof value.at === "number" &&
  typeof value.name === "string" &&
  ["undefined", "string"].includes(typeof value.text) &&
  ["undefined", "number"].includes(typeof value.left_out) &&
  (value.leg === "server" || value.leg === "view") &&
  (value.from === "host" || value.from === "server" || value.from === "view");

/** The messages of a recorded file, and which lines, from 1, are none. */
export function readRecord(text: string): { messages: Recorded[]; bad: number[] } {
  const messages: Recorded[] = [];
  const bad: number[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    try {
      const value: unknown = JSON.parse(line);
      if (isRecorded(value)) messages.push(value);
      else if (!(isObject(value) && isObject(value.dropped))) bad.push(index + 1);
    } catch {
      bad.push(index + 1);
    }
  }
  return { messages, bad };
}

export const writeRecord = (rows: readonly Row[]): string =>
  rows.map(({ entry }) => `${JSON.stringify(entry)}\n`).join("");

function searchedOf({ entry, method, problems }: Row): string {
  const { name, message, text = "" } = entry;
  const content = message === undefined ? text : JSON.stringify(message);
  const found = `${method} ${name} ${problems.join(" ")} ${content}`;
  return found.slice(0, MAX_SEARCHED).toLowerCase();
}

export class TrafficLog {
  rows: Row[] = [];
  /** How many have problems. */
  bad = 0;
  readonly #waiting = new Map<string, Row>(); // requests without an answer
  readonly #begun = new Map<string, Set<string>>(); // what each View has been sent, or has sent

  add(entries: readonly Recorded[]): void {
    for (const entry of entries) this.#add(entry);
    const tooMany = this.rows.length - MAX_ROWS;
    if (tooMany > 0) {
      this.bad -= this.rows.slice(0, tooMany).filter(({ problems }) => problems.length > 0).length;
      this.rows = this.rows.slice(tooMany);
    }
    for (const row of this.rows.slice(-entries.length)) row.searched = searchedOf(row);
  }

  #add(entry: Recorded): void {
    const { message } = entry;
    const kind = kindOf(message);
    const given = isObject(message) ? message : {};
    const method = typeof given.method === "string" ? given.method : "";
    const row: Row = { entry, kind, method, problems: [], searched: "" };
    if (kind === "request") this.#waiting.set(this.#key(entry, given, entry.from), row);
    else if (kind === "answer") this.#answer(row, given);
    if (entry.text !== undefined) row.problems.push("It is no JSON");
    else if (kind === "other" && entry.left_out === undefined)
      row.problems.push("It is no JSON-RPC");
    if (entry.leg === "view") this.#checkOrder(row);
    if (row.problems.length > 0) this.bad += 1;
    this.rows.push(row);
  }

  #key({ leg, name }: Recorded, { id }: JsonObject, asker: string): string {
    return JSON.stringify([leg, name, asker, id]);
  }

  #answer(row: Row, given: JsonObject): void {
    const { entry } = row;
    const key = this.#key(entry, given, entry.from === "host" ? entry.leg : "host");
    const request = this.#waiting.get(key);
    if (request) {
      this.#waiting.delete(key);
      row.pair = request;
      request.pair = row;
      row.method = request.method;
      row.ms = request.ms = Math.round((entry.at - request.entry.at) * 10_000) / 10;
    } else row.problems.push("It answers no request that is open");
    if (row.method === "subscriptions/listen") return; // answered when its server ends
    const { error, result } = given;
    if (isObject(error)) row.problems.push(`Error ${wordOf(error.code)}: ${wordOf(error.message)}`);
    else if (isObject(result) && result.isError === true) row.problems.push("The tool failed");
  }

  #checkOrder(row: Row): void {
    const { entry, method } = row;
    const begun = this.#begun.get(entry.name) ?? new Set();
    if (row.kind === "answer") return;
    if (method === "ui/initialize") begun.clear();
    const isEarly = !begun.has("ui/initialize") && !EARLY.includes(method);
    if (entry.from === "view" && isEarly && row.kind !== "other")
      row.problems.push("The View sent it before ui/initialize");
    const needs = method === "ui/notifications/tool-result" ? "ui/notifications/tool-input" : "";
    if (needs && !begun.has(needs)) row.problems.push(`It was sent before ${needs}`);
    begun.add(method);
    this.#begun.set(entry.name, begun);
  }

  clear(): void {
    this.rows = [];
    this.bad = 0;
    this.#waiting.clear();
    this.#begun.clear();
  }

  filtered({ text, leg, isBad }: Filter): Row[] {
    const wanted = text.trim().toLowerCase();
    return this.rows.filter(
      (row) =>
        (!leg || row.entry.leg === leg) &&
        (!isBad || row.problems.length > 0) &&
        (!wanted || row.searched.includes(wanted)),
    );
  }

  /**
   * What was under way when something went wrong, which its View may have reported in these words: a
   * request that had no answer yet, or else the last message.
   */
  underWay(seconds: number, view: string, words = ""): Row | undefined {
    const isBefore = ({ entry }: Row): boolean =>
      Date.parse(entry.time) <= seconds * 1000 + 1 && (!view || entry.name === view);
    const isReport = (row: Row): boolean =>
      isBefore(row) && REPORTS.includes(row.method) && hasWords(row.entry.message, words);
    const reported = this.rows.findLastIndex(isReport);
    const end = reported < 0 ? this.rows.findLastIndex(isBefore) + 1 : reported;
    const before = this.rows.slice(0, end).filter(isBefore);
    const later = new Set(this.rows.slice(end));
    const isOpen = ({ kind, pair }: Row): boolean =>
      kind === "request" && (!pair || later.has(pair));
    return before.findLast(isOpen) ?? before.at(-1);
  }
}

/** Whether a report says that. */
function hasWords(message: unknown, words: string): boolean {
  const text = JSON.stringify(words.slice(0, MAX_WORDS)).slice(1, -1);
  return JSON.stringify(message).includes(text);
}
