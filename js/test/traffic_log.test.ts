import assert from "node:assert/strict";
import { test } from "node:test";
import { readRecord, TrafficLog, writeRecord, type Recorded } from "../src/dev/traffic_log.js";

const ALL = { text: "", leg: "", isBad: false } as const;

let clock = 0;
const line = (leg: Recorded["leg"], from: Recorded["from"], message: unknown): Recorded => {
  clock += 0.01;
  const time = new Date(1_800_000_000_000 + clock * 1000).toISOString();
  return { time, at: clock, leg, name: leg === "server" ? "shop" : "shop-1", from, message };
};
const logOf = (...entries: Recorded[]): TrafficLog => {
  const log = new TrafficLog();
  log.add(entries);
  return log;
};

test("an answer belongs to the request of the other side, with the time between them", () => {
  const log = logOf(
    line("server", "host", { id: 1, method: "tools/list" }),
    line("server", "server", { id: 1, method: "elicitation/create" }),
    line("server", "server", { id: 1, result: {} }),
    line("server", "host", { id: 1, result: {} }),
  );
  const [asked, asking, answer, reply] = log.rows;
  assert.equal(answer!.pair, asked);
  assert.equal(asked!.pair, answer);
  assert.equal(reply!.pair, asking);
  assert.equal(answer!.method, "tools/list");
  assert.deepEqual([asked!.ms, asking!.ms], [20, 20]);
  assert.equal(log.bad, 0);
});

test("errors, failed tools, answers to nothing and what is no JSON are problems", () => {
  const text: Recorded = { ...line("server", "server", undefined), text: "Traceback" };
  const log = logOf(
    line("server", "host", { id: 1, method: "tools/call" }),
    line("server", "server", { id: 1, error: { code: -32603, message: "no" } }),
    line("server", "host", { id: 2, method: "tools/call" }),
    line("server", "server", { id: 2, result: { isError: true } }),
    line("server", "server", { id: 2, result: {} }),
    text,
    line("server", "server", [1]),
    { ...line("server", "server", undefined), left_out: 9_000_000 },
  );
  assert.deepEqual(
    log.rows.map(({ problems }) => problems.join()),
    ["", "Error -32603: no", "", "The tool failed", "It answers no request that is open"].concat(
      "It is no JSON",
      "It is no JSON-RPC",
      "",
    ),
  );
  assert.equal(log.filtered({ ...ALL, isBad: true }).length, log.bad);
});

test("a subscription that ends with its server is no problem", () => {
  const log = logOf(
    line("server", "host", { id: 1, method: "subscriptions/listen" }),
    line("server", "server", { id: 1, error: { code: -32000, message: "Connection closed" } }),
  );
  assert.equal(log.bad, 0);
});

test("a View that speaks before its handshake, or gets a result before its input, is noticed", () => {
  const log = logOf(
    line("view", "view", { method: "ui/notifications/size-changed" }),
    line("view", "view", { id: 1, method: "ui/initialize" }),
    line("view", "view", { method: "ui/notifications/size-changed" }),
    line("view", "host", { method: "ui/notifications/tool-result" }),
    line("view", "host", { method: "ui/notifications/tool-input" }),
    line("view", "host", { method: "ui/notifications/tool-result" }),
  );
  assert.deepEqual(
    log.rows.map(({ problems }) => problems.length),
    [1, 0, 0, 1, 0, 0],
  );
});

test("ten thousand messages are kept, searched and filtered, and the oldest are dropped", () => {
  const log = new TrafficLog();
  for (let id = 0; id < 6000; id += 1) {
    log.add([
      line("server", "host", { id, method: "tools/call", params: { name: `tool-${id}` } }),
      line("server", "server", { id, error: { code: 1, message: "bad" } }),
    ]);
  }
  assert.equal(log.rows.length, 10_000);
  assert.equal(log.bad, 5000);
  assert.equal(log.filtered({ ...ALL, text: "TOOL-5999" }).length, 1);
  assert.equal(log.filtered({ ...ALL, text: 'tool-1"' }).length, 0);
  assert.equal(log.filtered({ ...ALL, leg: "view" }).length, 0);
});

test("what is exported is a record, and a record can be read again", () => {
  const log = logOf(line("view", "view", { id: 1, method: "ui/initialize" }));
  const text = writeRecord(log.rows);
  const dropped = '{"dropped":{"messages":1,"bytes":9}}';
  const noTime = JSON.stringify({ ...log.rows[0]!.entry, time: 5 });
  const read = readRecord(`${text}${dropped}\n\nnot JSON\n{"at":1,"leg":"other"}\n${noTime}\n`);
  assert.deepEqual(read, { messages: [log.rows[0]!.entry], bad: [4, 5, 6] });
});

test("values that have no text of their own are shown, and hide nothing else", () => {
  const odd = { toString: null, valueOf: null };
  const log = logOf(
    line("server", "server", { id: 1, error: { code: odd, message: odd } }),
    line("server", "server", { id: odd, error: {} }),
    line("view", "view", { method: "toString" }),
    line("server", "server", { id: 2, result: {} }),
  );
  assert.equal(log.rows.length, 4);
  const text = JSON.stringify(odd);
  assert.ok(log.rows[0]!.problems.includes(`Error ${text}: ${text}`));
  assert.ok(log.rows[1]!.problems.includes("Error none: none"));
  assert.deepEqual(log.rows[2]!.problems, ["The View sent it before ui/initialize"]);
});

test("what was under way when something was reported is the request without an answer", () => {
  const log = logOf(
    line("view", "host", { id: 1, method: "tools/call" }),
    line("view", "host", { method: "ui/notifications/tool-input" }),
    line("view", "view", { method: "transom/notifications/problem", params: { message: 'a "b"' } }),
    line("view", "view", { id: 2, method: "ui/message" }),
    line("view", "view", { id: 1, result: {} }),
  );
  const at = Date.parse(log.rows[4]!.entry.time) / 1000; // it was read later than what follows it
  assert.equal(log.underWay(at, "", 'a "b"')?.method, "tools/call");
  assert.equal(log.underWay(at, "", "another")?.method, "ui/message");
});

test("what was under way at a moment is otherwise the last message before it", () => {
  const log = logOf(
    line("view", "view", { method: "one" }),
    line("server", "host", { method: "two" }),
    line("view", "view", { method: "three" }),
  );
  const [, two, three] = log.rows.map(({ entry }) => Date.parse(entry.time) / 1000);
  assert.equal(log.underWay(two!, "")?.method, "two");
  assert.equal(log.underWay(two!, "shop-1")?.method, "one");
  assert.equal(log.underWay(three!, "")?.method, "three");
  assert.equal(log.underWay(0, ""), undefined);
});
