/**
 * A View's end of the conversation with its host: correlates requests and answers, both ways.
 *
 * 1. Messages are taken from the parent window alone, and only if they are JSON-RPC.
 * 2. A request of the host runs until it is answered or cancelled; closing cancels all of them.
 * 3. What a handler throws stays in the page, unless it is a ProtocolError.
 */
import { cancelled, ErrorCode, must, ProtocolError } from "./errors.js";
import { copy, hasOwn, isObject, type JsonObject } from "./json.js";
import type { Reporter } from "./reporter.js";
import type { RequestOptions, ToolExtra } from "./types.js";
import { isJsonRpc, postMessage, readMessage, type Message, type MessageId } from "./wire.js";

const MAX_RUNNING = 1024;
const DEFAULT_TIMEOUT = 60_000;

// Saved before a page can replace it. Outside a browser there is none.
const host = globalThis.parent as Window | undefined;

/** A request of the host while it is served: what its handler may use, and how to stop it. */
export interface Served {
  readonly _extra: ToolExtra;
  readonly _control: AbortController;
}

/** What a View does with what its host sends. */
export interface PeerHandlers {
  /** Answer a request. */
  _onRequest: (method: string, params: JsonObject, served: Served) => unknown;
  _onNotification: (method: string, params: JsonObject) => unknown;
}

/** A request to the host that waits for its answer. */
interface Pending {
  _onAnswer: (message: Message) => void;
  _onProgress: (params: JsonObject) => void;
  _fail: (reason: unknown) => void;
}

export type Peer = ReturnType<typeof makePeer>;

export function makePeer(reporter: Reporter, handlers: PeerHandlers) {
  const pending = new Map<unknown, Pending>();
  const running = new Map<unknown, AbortController>();
  let nextId = 0;
  let isOpen = false;

  function open(): void {
    isOpen = true;
    addEventListener("message", receive);
  }

  /** Answer the calls that run, fail the requests that wait, and stop listening. */
  function close(): void {
    for (const [id, control] of running) {
      if (!control.signal.aborted) send({ id, error: cancelled("call") });
      control.abort();
    }
    running.clear();
    for (const { _fail: fail } of pending.values()) fail(new Error("Connection closed"));
    removeEventListener("message", receive);
    isOpen = false;
  }

  function send(message: JsonObject): void {
    must(isOpen && host, "Not connected");
    postMessage(host, message);
  }

  function notify(method: string, params?: object): void {
    send({ method, params });
  }

  /** Ask the host. Each notice of progress starts the timeout again. */
  function request(
    method: string,
    params: JsonObject = {},
    { timeout = DEFAULT_TIMEOUT, signal, onprogress }: RequestOptions = {},
  ): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = nextId;
      nextId += 1;
      const fail = (reason: unknown): void => {
        settle();
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- a signal's reason
        reject(reason);
      };
      const settle = (): void => {
        clearTimeout(timer);
        pending.delete(id);
      };
      const cancel = (reason: unknown): void => {
        if (!pending.has(id)) return;
        const why = { requestId: id, reason: String(reason) };
        notify("notifications/cancelled", why);
        fail(reason);
      };
      const wait = (): ReturnType<typeof setTimeout> =>
        setTimeout(cancel, timeout, new Error(`${method}: no answer within ${timeout} ms`));
      const _meta = { ...(params._meta as JsonObject | undefined), progressToken: id };
      send({ id, method, params: onprogress ? { ...params, _meta } : params });
      let timer = wait();
      pending.set(id, {
        _fail: fail,
        _onAnswer({ result, error = {} }) {
          settle();
          if (result) resolve(result);
          else reject(new ProtocolError(error.code as number, error.message as string, error.data));
        },
        _onProgress(progress) {
          clearTimeout(timer);
          timer = wait();
          void reporter._run(onprogress, progress as never);
        },
      });
      signal?.addEventListener("abort", () => cancel(signal.reason));
    });
  }

  /** What a callback may use while it runs, for a request of the host or of the browser. */
  function makeExtra(
    signal: AbortSignal,
    id?: MessageId,
    method?: string,
    meta?: unknown,
  ): ToolExtra {
    const _meta = isObject(meta) ? meta : {};
    const notify = async (notification: { method: string; params?: object }): Promise<void> => {
      if (!signal.aborted) send(notification);
    };
    const sendProgress: ToolExtra["sendProgress"] = async (progress, total, message) => {
      if (!hasOwn(_meta, "progressToken")) return;
      const params = { progressToken: _meta.progressToken, progress, total, message };
      await notify({ method: "notifications/progress", params });
    };
    return { signal, mcpReq: { id, method, _meta, signal, notify }, sendProgress } as ToolExtra;
  }

  async function receive({ source, data }: MessageEvent): Promise<void> {
    if (source !== host || !isJsonRpc(data)) return;
    try {
      const message = readMessage(data);
      const { id, method, params } = message;
      if (method && id !== undefined) await serve(id, method, params);
      else if (method) await notice(method, params);
      else {
        const waiting = pending.get(id);
        must(waiting, `Unknown response: ${id}`);
        waiting._onAnswer(message);
      }
    } catch (error) {
      void reporter._report(error);
    }
  }

  function notice(method: string, params: JsonObject): unknown {
    if (method === "notifications/cancelled") {
      return running.get(params.requestId)?.abort(params.reason);
    }
    if (method === "notifications/progress") {
      return pending.get(params.progressToken)?._onProgress(params);
    }
    return handlers._onNotification(method, params);
  }

  async function serve(id: MessageId, method: string, params: JsonObject): Promise<void> {
    must(!running.has(id), `Id ${id} is in use`);
    const control = new AbortController();
    const { signal } = control;
    let answer: JsonObject;
    running.set(id, control);
    try {
      must(running.size <= MAX_RUNNING, "Too many requests", ErrorCode.Refused);
      answer = {
        result: copy(
          await handlers._onRequest(method, params, {
            _extra: makeExtra(signal, id, method, params._meta),
            _control: control,
          }),
        ),
      };
    } catch (error) {
      answer = { error: reporter._toError(error, "Internal error", "error") };
    }
    if (running.get(id) === control) running.delete(id);
    if (!signal.aborted) send({ id, ...answer });
  }

  return {
    _open: open,
    _close: close,
    _notify: notify,
    _request: request,
    _makeExtra: makeExtra,
  };
}
