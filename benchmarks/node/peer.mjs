/**
 * How fast the official SDK is: `App` and `AppBridge` of @modelcontextprotocol/ext-apps 2.x, both
 * in this process, joined by the SDK's own InMemoryTransport.
 *
 *   node peer.mjs [--rows ping,call,list50,list1000] [--seconds 1] [--repeats 5] [--warmup 1]
 *                 [--json] [--jit] [--inflight 100]
 *
 * Rows, each sequential and with many requests in flight:
 *   ping      round trip of `ping`, bridge to App
 *   call      bridge.callTool of a registered tool: input {text, count} and output {echo, n} checked
 *   list50    bridge.listTools with 50 registered tools of three properties each
 *   list1000  the same with 1,000
 *
 * Prints one JSON object a line: {"peer", "version", "row", "mode", "json", "jit", "per_second",
 * "per_cpu_second", "repeats"}; per_second is the median of the repeats, per_cpu_second the median
 * by the processor time of the process, which a busy machine disturbs less. The SDK hands JavaScript objects over as
 * they are; `--json` puts JSON.stringify and JSON.parse between the two, as postMessage to another
 * process or a socket would need. An App turns off zod's compiled validators (`allowUnsafeEval:
 * false`) unless told otherwise; `--jit` leaves them on. The App logs every ping it gets to the
 * console; that is silenced here, in the SDK's favour.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { InMemoryTransport } from "@modelcontextprotocol/client";
import { App } from "@modelcontextprotocol/ext-apps";
import { AppBridge } from "@modelcontextprotocol/ext-apps/app-bridge";
import { z } from "zod";

console.log = () => {};

const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "ping,call,list50,list1000" },
    seconds: { type: "string", default: "1" },
    repeats: { type: "string", default: "5" },
    warmup: { type: "string", default: "1" },
    inflight: { type: "string", default: "100" },
    json: { type: "boolean", default: false },
    jit: { type: "boolean", default: false },
  },
});

function number(name, least) {
  const value = Number(options[name]);
  if (!(value >= least)) {
    console.error(`--${name} must be a number of at least ${least}, not ${options[name]}`);
    process.exit(2);
  }
  return value;
}

const seconds = number("seconds", 0.01);
const repeats = number("repeats", 1);
const warmup = number("warmup", 0);
const inflight = number("inflight", 1);

/** A pair of the SDK's transports; with --json every message becomes text and back. */
function linkedPair() {
  const pair = InMemoryTransport.createLinkedPair();
  if (options.json) {
    for (const transport of pair) {
      const send = transport.send.bind(transport);
      transport.send = (message) => send(JSON.parse(JSON.stringify(message)));
    }
  }
  return pair;
}

function registerEcho(app) {
  app.registerTool(
    "echo",
    {
      description: "Echo a text",
      inputSchema: z.object({ text: z.string(), count: z.int() }),
      outputSchema: z.object({ echo: z.string(), n: z.number() }),
    },
    ({ text, count }) => ({
      content: [{ type: "text", text }],
      structuredContent: { echo: text, n: count },
    }),
  );
}

function registerMany(app, count) {
  for (let n = 0; n < count; n += 1) {
    app.registerTool(
      `tool_${n}`,
      {
        description: `Tool number ${n}`,
        inputSchema: z.object({ id: z.string(), limit: z.int(), exact: z.boolean() }),
      },
      ({ id }) => ({ content: [{ type: "text", text: id }] }),
    );
  }
}

async function listing(bridge, count) {
  const { tools } = await bridge.listTools();
  if (tools.length !== count) throw new Error(`${tools.length} tools listed, not ${count}`);
}

const argumentsOfCall = { text: "hello", count: 3 };

const ROWS = {
  ping: { register: () => {}, once: (bridge) => bridge.request({ method: "ping" }) },
  call: {
    register: registerEcho,
    once: async (bridge) => {
      const result = await bridge.callTool({ name: "echo", arguments: argumentsOfCall });
      if (result.structuredContent.n !== 3) throw new Error("wrong answer");
    },
  },
  list50: { register: (app) => registerMany(app, 50), once: (bridge) => listing(bridge, 50) },
  list1000: {
    register: (app) => registerMany(app, 1000),
    once: (bridge) => listing(bridge, 1000),
  },
};

/** Requests finished a second, of the clock and of the processor, by `workers` loops that each wait for their answer. */
async function rate(once, workers, duration) {
  const cpu = process.cpuUsage();
  const begin = performance.now();
  const end = begin + duration * 1000;
  let done = 0;
  await Promise.all(
    Array.from({ length: workers }, async () => {
      while (performance.now() < end) {
        await once();
        done += 1;
      }
    }),
  );
  const elapsed = performance.now() - begin;
  const { user, system } = process.cpuUsage(cpu);
  return { wall: (done / elapsed) * 1e3, cpu: (done / (user + system)) * 1e6 };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const rounded = (value) => Number(value.toFixed(1));

const manifest = new URL("../../package.json", import.meta.resolve("@modelcontextprotocol/ext-apps"));
const { version } = JSON.parse(readFileSync(manifest, "utf8"));

async function measure(row) {
  const { register, once } = ROWS[row];
  const settings = { autoResize: false, allowUnsafeEval: options.jit };
  const app = new App({ name: "view", version: "1.0.0" }, {}, settings);
  register(app);
  const bridge = new AppBridge(null, { name: "host", version: "1.0.0" }, {}, { hostContext: {} });
  const [near, far] = linkedPair();
  await bridge.connect(near);
  await app.connect(far);

  for (const [mode, workers] of [["sequential", 1], [`inflight${inflight}`, inflight]]) {
    const work = () => once(bridge);
    if (warmup) await rate(work, workers, warmup);
    const rates = [];
    for (let n = 0; n < repeats; n += 1) rates.push(await rate(work, workers, seconds));
    const report = {
      ...{ peer: "ext-apps", version, row, mode, json: options.json, jit: options.jit },
      per_second: rounded(median(rates.map(({ wall }) => wall))),
      per_cpu_second: rounded(median(rates.map(({ cpu }) => cpu))),
      repeats: rates.map(({ wall }) => rounded(wall)),
    };
    process.stdout.write(JSON.stringify(report) + "\n");
  }
  await app.close();
}

const rows = options.rows.split(",");
const unknown = rows.filter((row) => !Object.hasOwn(ROWS, row));
if (unknown.length) {
  console.error(`unknown rows ${unknown}; known are ${Object.keys(ROWS)}`);
  process.exit(2);
}
for (const row of rows) await measure(row);
