/**
 * How fast the official SDK is: `App` and `AppBridge` of @modelcontextprotocol/ext-apps 2.x, both
 * in this process, joined by the SDK's own InMemoryTransport.
 *
 *   echo "call 1 1" | node peer.mjs [--json] [--jit]
 *
 * Each line of standard input is a row, how many callers there are, and for how many seconds. The
 * answer is one JSON object a line: {"per_second", "per_cpu_second"}, by the clock and by the
 * processor time of the process. Each caller waits for its answer before it calls again. A row is
 * warmed up for a second when it is first measured.
 *
 *   ping      round trip of `ping`, bridge to App
 *   call      bridge.callTool of a registered tool: input {text, count} and output {echo, n} checked
 *   wait      the same with an async tool, which awaits once before it returns
 *   list50    bridge.listTools with 50 registered tools of three properties each
 *   list1000  the same with 1,000
 *
 * The SDK hands JavaScript objects over as they are; `--json` puts JSON.stringify and JSON.parse
 * between the two, as postMessage to another process or a socket would need. An App turns off zod's
 * compiled validators (`allowUnsafeEval: false`) unless told otherwise; `--jit` leaves them on. The
 * App logs every ping it gets to the console; that is silenced here, in the SDK's favour.
 */
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

import { InMemoryTransport } from "@modelcontextprotocol/client";
import { App } from "@modelcontextprotocol/ext-apps";
import { AppBridge } from "@modelcontextprotocol/ext-apps/app-bridge";
import { z } from "zod";

console.log = () => {};

const { values: options } = parseArgs({
  options: {
    json: { type: "boolean", default: false },
    jit: { type: "boolean", default: false },
  },
});

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

function registerEcho(app, handler) {
  app.registerTool(
    "echo",
    {
      description: "Echo a text",
      inputSchema: z.object({ text: z.string(), count: z.int() }),
      outputSchema: z.object({ echo: z.string(), n: z.number() }),
    },
    handler,
  );
}

const echo = ({ text, count }) => ({
  content: [{ type: "text", text }],
  structuredContent: { echo: text, n: count },
});

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

async function called(bridge) {
  const result = await bridge.callTool({ name: "echo", arguments: { text: "hello", count: 3 } });
  if (result.structuredContent.n !== 3) throw new Error("wrong answer");
}

async function waiting(given) {
  await null;
  return echo(given);
}

const ROWS = {
  ping: { register: () => {}, once: (bridge) => bridge.request({ method: "ping" }) },
  call: { register: (app) => registerEcho(app, echo), once: called },
  wait: { register: (app) => registerEcho(app, waiting), once: called },
  list50: { register: (app) => registerMany(app, 50), once: (bridge) => listing(bridge, 50) },
  list1000: {
    register: (app) => registerMany(app, 1000),
    once: (bridge) => listing(bridge, 1000),
  },
};

/** Requests finished a second, by the clock and by the processor. */
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
  return { per_second: (done / elapsed) * 1e3, per_cpu_second: (done / (user + system)) * 1e6 };
}

async function connected(row) {
  const { register, once } = ROWS[row];
  const settings = { autoResize: false, allowUnsafeEval: options.jit };
  const app = new App({ name: "view", version: "1.0.0" }, {}, settings);
  register(app);
  const bridge = new AppBridge(null, { name: "host", version: "1.0.0" }, {}, { hostContext: {} });
  const [near, far] = linkedPair();
  await bridge.connect(near);
  await app.connect(far);
  return () => once(bridge);
}

const warm = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const [row, callers, seconds] = line.split(" ");
  if (!warm.has(row)) {
    if (!Object.hasOwn(ROWS, row)) throw new Error(`no row ${row}; there are ${Object.keys(ROWS)}`);
    warm.set(row, await connected(row));
    await rate(warm.get(row), 1, 0.5);
    await rate(warm.get(row), 100, 0.5);
  }
  const found = await rate(warm.get(row), Number(callers), Number(seconds));
  process.stdout.write(JSON.stringify(found) + "\n");
}
