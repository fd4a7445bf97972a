/**
 * What bridge.mjs and view.mjs share: newline-delimited JSON on two channels.
 *
 * The WIRE carries the JSON-RPC between View and host, one message a line: stdin and stdout, or
 * with `--socket PATH` a Unix socket on which the script listens (each new connection takes over,
 * so a peer whose close() ends the stream can still come back).
 *
 * The CONTROL channel carries the test's orders: fd 3 in and fd 4 out, or with `--control FD` one
 * duplex socket. It ends the process when it ends.
 *
 *   -> {"id": 1, "do": "callTool", "args": {...}}           orders start in order, run side by side
 *   <- {"id": 1, "ok": VALUE}                               VALUE is null when there is none
 *   <- {"id": 1, "error": {"code", "message", "data"}}      code: number, SDK string, or null
 *   <- {"event": "NAME", ...}                               at any time, in the order things happened
 *
 * The two channels are separate pipes: nothing orders a message on one against one on the other.
 * Lines that arrive while no transport is connected wait for the next one. stdout carries nothing
 * but JSON-RPC; whatever the SDK logs goes to stderr, its warnings also as events.
 *
 * Orders that both scripts know:
 *   cancel     {call, reason?}     abort the order with that id (any order that waits for the peer)
 *   release    {key}               let go of everything held under key; an error when nothing is
 *   rawRequest {method, params?, timeout?}    a request whose result is not validated
 *   rawNotify  {method, params?}
 *   rawSend    {message, times?} | {text}     any JSON value, or any text, as one line
 *   trace      {on}                report each message that arrives as a `received` event
 *   intercept  {methods}           keep these requests from the SDK; answer by rawSend, or never
 *   hangUp     {}                  end the outgoing stream
 *
 * Events of both: ready {sdk}, closed, error {message}, warning {text}, received {message},
 * intercepted {message}, garbage {line}, hungUp (the peer ended its stream).
 */
import { closeSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { parseArgs } from "node:util";

import { parseJSONRPCMessage } from "@modelcontextprotocol/client";
import { z } from "zod";

export const { values: options } = parseArgs({
  options: {
    sdk: { type: "string", default: "2" },
    socket: { type: "string" },
    control: { type: "string" },
  },
});

/** Calls back with each line. Splits on 0x0A only: U+2028 may stand inside JSON. */
function eachLine(stream, online, onend) {
  let parts = [];
  stream.on("data", (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at));
      from = at + 1;
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      if (line.trim()) online(line);
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
  });
  let over = false;
  const end = () => {
    if (!over) onend();
    over = true;
  };
  stream.on("end", end);
  stream.on("error", end);
}

function openControl() {
  if (options.control) {
    const socket = new net.Socket({ fd: Number(options.control) });
    return [socket, socket];
  }
  const input = new net.Socket({ fd: 3, readable: true, writable: false });
  return [input, new net.Socket({ fd: 4, readable: false, writable: true })];
}

const [orders, reports] = openControl();
const running = new Map();
const held = new Map();

export function emit(event, fields = {}) {
  reports.write(JSON.stringify({ event, ...fields }) + "\n");
}

/** Waits until the test releases `key`, or fails when the signal aborts. */
export function hold(key, signal) {
  return new Promise((resolve, reject) => {
    const entry = { resolve };
    if (!held.has(key)) held.set(key, new Set());
    held.get(key).add(entry);
    signal?.addEventListener("abort", () => {
      held.get(key)?.delete(entry);
      reject(new Error(`cancelled: ${signal.reason}`));
    });
  });
}

/** An Error that the SDK sends as this JSON-RPC error. */
export function wireError({ code, message = "refused", data }) {
  return Object.assign(new Error(message), { code, data });
}

/** The lines between the two peers; transports come and go on it. */
class Wire {
  #output = null;
  #transport = null;
  #arrived = [];
  #turn = null;
  tracing = false;
  intercepted = new Set();

  attach(input, output) {
    this.#output = output;
    output.on("error", (error) => emit("error", { message: String(error.message) }));
    const onend = () => {
      emit("hungUp");
      this.#arrive(() => this.#output === output && this.#transport.close());
    };
    eachLine(input, (line) => this.#arrive(() => this.#receive(line)), onend);
  }

  #arrive(delivery) {
    this.#arrived.push(delivery);
    this.#deliver();
  }

  /**
   * What arrived waits for a transport, then gets a turn of the event loop each, as with
   * postMessage: the SDK drops a progress notice delivered in the same turn as its response.
   */
  #deliver() {
    if (this.#turn || !this.#transport || !this.#arrived.length) return;
    this.#turn = setImmediate(() => {
      this.#turn = null;
      if (this.#transport) this.#arrived.shift()();
      this.#deliver();
    });
  }

  #receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return emit("garbage", { line: line.slice(0, 200) });
    }
    if (this.tracing) emit("received", { message });
    if (this.intercepted.has(message?.method)) return emit("intercepted", { message });
    this.#transport.deliver(message);
  }

  write(text) {
    if (!this.#output?.writable) return Promise.reject(new Error("the wire is closed"));
    return new Promise((resolve, reject) => {
      this.#output.write(text + "\n", (error) => (error ? reject(error) : resolve()));
    });
  }

  listen(transport) {
    this.#transport = transport;
    this.#deliver();
  }

  leave(transport) {
    if (this.#transport === transport) this.#transport = null;
  }

  hangUp() {
    const output = this.#output;
    // libuv never closes fd 1 by itself, and only closing it ends the pipe.
    output?.end(() => output instanceof StandardOutput && closeSync(1));
  }
}

class StandardOutput extends net.Socket {
  constructor() {
    super({ fd: 1, readable: false, writable: true });
  }
}

export const wire = new Wire();

/** The SDK's Transport on the wire; like its own transports it checks the JSON-RPC envelope. */
export class LineTransport {
  #closed = false;

  async start() {
    wire.listen(this);
  }

  deliver(message) {
    let checked;
    try {
      checked = parseJSONRPCMessage(message);
    } catch (error) {
      this.onerror?.(new Error(`Invalid JSON-RPC message: ${error.message}`));
      return;
    }
    this.onmessage?.(checked);
  }

  send(message) {
    return wire.write(JSON.stringify(message));
  }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    wire.leave(this);
    this.onclose?.();
  }
}

/** The orders above, for the `Protocol` object (App or AppBridge) that `peer()` returns. */
function commonOrders(peer) {
  return {
    cancel: ({ call, reason = "cancelled by the test" }) => {
      if (!running.has(call)) throw new Error(`no order ${call} is running`);
      running.get(call).abort(reason);
    },
    release: ({ key }) => {
      if (!held.get(key)?.size) throw new Error(`nothing is held under ${key}`);
      for (const entry of held.get(key)) entry.resolve();
      held.delete(key);
    },
    rawRequest: ({ method, params, timeout }, { signal }) =>
      peer().request({ method, params }, z.any(), { timeout, signal }),
    rawNotify: ({ method, params }) => peer().notification({ method, params }),
    rawSend: async ({ message, text = JSON.stringify(message), times = 1 }) => {
      for (let n = 0; n < times; n += 1) await wire.write(text);
    },
    trace: ({ on }) => {
      wire.tracing = on;
    },
    intercept: ({ methods }) => {
      wire.intercepted = new Set(methods);
    },
    hangUp: () => wire.hangUp(),
  };
}

/** Opens both channels and obeys. `orders` maps a name to `(args, {id, signal}) => value`. */
export async function serve(sdk, peer, ownOrders) {
  const known = new Map(Object.entries({ ...commonOrders(peer), ...ownOrders }));
  console.log = console.info = console.debug = console.error;
  console.warn = (text) => {
    console.error(text);
    emit("warning", { text: String(text) });
  };
  process.on("unhandledRejection", (error) => emit("error", { message: String(error?.message) }));

  async function obey(line) {
    const { id, do: name, args = {} } = JSON.parse(line);
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (!known.has(name)) throw new Error(`unknown order ${name}`);
      const value = await known.get(name)(args, { id, signal: controller.signal });
      reports.write(JSON.stringify({ id, ok: value ?? null }) + "\n");
    } catch (error) {
      const { code = null, message = String(error), data = null } = error ?? {};
      reports.write(JSON.stringify({ id, error: { code, message, data } }) + "\n");
    } finally {
      running.delete(id);
    }
  }

  if (options.socket) {
    const server = net.createServer((socket) => wire.attach(socket, socket));
    process.on("exit", () => rmSync(options.socket, { force: true }));
    await new Promise((resolve) => server.listen(options.socket, resolve));
  } else {
    wire.attach(process.stdin, new StandardOutput());
  }
  eachLine(orders, obey, () => process.exit(0));
  const manifest = new URL("../../package.json", import.meta.resolve(sdk));
  emit("ready", { sdk: JSON.parse(readFileSync(manifest, "utf8")).version });
}
