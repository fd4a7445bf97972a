/**
 * What bridge.mjs and view.mjs share: newline-delimited JSON on two channels, sockets of peers.mjs.
 *
 * The WIRE carries the JSON-RPC between View and host, one message a line. Each new connection
 * takes over, so a peer whose close() ends the stream can still come back.
 *
 * The CONTROL channel carries the test's orders. It ends the peer when it ends.
 *
 *   -> {"id": 1, "do": "callTool", "args": {...}}           orders start in order, run side by side
 *   <- {"id": 1, "ok": VALUE}                               VALUE is null when there is none
 *   <- {"id": 1, "error": {"code", "message", "data"}}      code: number, SDK string, or null
 *   <- {"event": "NAME", ...}                               at any time, in the order things happened
 *
 * Nothing orders a message on one channel against one on the other. Lines that arrive while no
 * transport is connected wait for the next one. What the SDK logs goes to stderr, its warnings also
 * as events.
 *
 * Orders that both know:
 *   cancel     {call, reason?}     abort the order with that id (any order that waits for the peer)
 *   release    {key}               let go of everything held under key; an error when nothing is
 *   rawRequest {method, params?, timeout?}    a request whose result is not validated
 *   rawNotify  {method, params?}
 *   rawSend    {message, times?} | {text}     any JSON value, or any text, as one line
 *   trace      {on}                report each message that arrives as a `received` event
 *   intercept  {methods}           keep these requests from the SDK; answer by rawSend, or never
 *   hangUp     {}                  end the outgoing stream
 *   die        {}                  end both streams at once, as a process that is killed does
 *   wireTo     {peer}              connect the wire to that of another peer
 *
 * Events of both: ready {sdk}, wired (a new connection is the wire), closed, error {message},
 * warning {text}, received {message}, intercepted {message}, garbage {line}, hungUp (the other peer
 * ended its stream).
 */
import { parseJSONRPCMessage } from "@modelcontextprotocol/client";
import { z } from "zod";

/** Calls back with each line. Splits on 0x0A only: U+2028 may stand inside JSON. */
export function eachLine(stream, online, onend) {
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
  for (const event of ["end", "error", "close"]) stream.on(event, end);
}

/** An Error that the SDK sends as this JSON-RPC error. */
export function wireError({ code, message = "refused", data }) {
  return Object.assign(new Error(message), { code, data });
}

/** The lines between the two peers; transports come and go on it. */
class Wire {
  #emit;
  #socket = null;
  #transport = null;
  #arrived = [];
  #turn = null;
  tracing = false;
  intercepted = new Set();

  constructor(emit) {
    this.#emit = emit;
  }

  /** Takes this socket over; returns what is to happen to its lines and when it ends. */
  attach(socket) {
    this.#socket?.destroy();
    this.#socket = socket;
    socket.on("error", (error) => this.#emit("error", { message: String(error.message) }));
    this.#emit("wired");
    return {
      online: (line) => this.#arrive(() => this.#receive(line)),
      onend: () => {
        this.#emit("hungUp");
        this.#arrive(() => this.#socket === socket && this.#transport.close());
      },
    };
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
      return this.#emit("garbage", { line: line.slice(0, 200) });
    }
    if (this.tracing) this.#emit("received", { message });
    if (this.intercepted.has(message?.method)) return this.#emit("intercepted", { message });
    this.#transport.deliver(message);
  }

  write(text) {
    if (!this.#socket?.writable) return Promise.reject(new Error("the wire is closed"));
    return new Promise((resolve, reject) => {
      this.#socket.write(text + "\n", (error) => (error ? reject(error) : resolve()));
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
    this.#socket?.end();
  }

  destroy() {
    this.#socket?.destroy();
  }
}

/** The SDK's Transport on a wire; like its own transports it checks the JSON-RPC envelope. */
class LineTransport {
  #wire;
  #closed = false;

  constructor(wire) {
    this.#wire = wire;
  }

  async start() {
    this.#wire.listen(this);
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
    return this.#wire.write(JSON.stringify(message));
  }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    this.#wire.leave(this);
    this.onclose?.();
  }
}

/** Calls `act` when the signal aborts, or now if it has: a request and its cancellation come together. */
export function onAborted(signal, act) {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act);
}

/** One official View or host of a test: its two channels, and what it holds and runs. */
export class Peer {
  #control;
  #running = new Map();
  #held = new Map();

  constructor(control) {
    this.#control = control;
    control.on("error", () => {}); // the test has ended
    this.wire = new Wire((event, fields) => this.emit(event, fields));
  }

  transport() {
    return new LineTransport(this.wire);
  }

  emit(event, fields = {}) {
    this.#report({ event, ...fields });
  }

  #report(report) {
    if (this.#control.writable) this.#control.write(JSON.stringify(report) + "\n");
  }

  /** Waits until the test releases `key`, or fails when the signal aborts. */
  hold(key, signal) {
    return new Promise((resolve, reject) => {
      const entry = { resolve };
      if (!this.#held.has(key)) this.#held.set(key, new Set());
      this.#held.get(key).add(entry);
      if (!signal) return;
      onAborted(signal, () => {
        this.#held.get(key)?.delete(entry);
        reject(new Error(`cancelled: ${signal.reason}`));
      });
    });
  }

  /** The orders above, for the `Protocol` object (App or AppBridge) that `protocol()` returns. */
  orders(protocol) {
    return {
      cancel: ({ call, reason = "cancelled by the test" }) => {
        if (!this.#running.has(call)) throw new Error(`no order ${call} is running`);
        this.#running.get(call).abort(reason);
      },
      release: ({ key }) => {
        if (!this.#held.get(key)?.size) throw new Error(`nothing is held under ${key}`);
        for (const entry of this.#held.get(key)) entry.resolve();
        this.#held.delete(key);
      },
      rawRequest: ({ method, params, timeout }, { signal }) =>
        protocol().request({ method, params }, z.any(), { timeout, signal }),
      rawNotify: ({ method, params }) => protocol().notification({ method, params }),
      rawSend: async ({ message, text = JSON.stringify(message), times = 1 }) => {
        for (let n = 0; n < times; n += 1) await this.wire.write(text);
      },
      trace: ({ on }) => {
        this.wire.tracing = on;
      },
      intercept: ({ methods }) => {
        this.wire.intercepted = new Set(methods);
      },
      hangUp: () => this.wire.hangUp(),
      die: () => {
        this.wire.destroy();
        this.#control.destroy();
      },
    };
  }

  /** Carries out one line. `known` maps the name of an order to `(args, {id, signal}) => value`. */
  async obey(known, line) {
    const { id, do: name, args = {} } = JSON.parse(line);
    const controller = new AbortController();
    this.#running.set(id, controller);
    try {
      if (!Object.hasOwn(known, name)) throw new Error(`unknown order ${name}`);
      const value = await known[name](args, { id, signal: controller.signal });
      this.#report({ id, ok: value ?? null });
    } catch (error) {
      const { code = null, message = String(error), data = null } = error ?? {};
      this.#report({ id, error: { code, message, data } });
    } finally {
      this.#running.delete(id);
    }
  }
}
