/**
 * The official View: `App` of @modelcontextprotocol/ext-apps, driven by a test.
 * The channels and the orders that a host knows, too: see wire.mjs.
 *
 * Orders (PARAMS are the wire's; `timeout` is in milliseconds):
 *   create {appInfo?, capabilities?, strict?}   make the App; without it the first order that needs
 *                                               one makes App({name: "official-view"}, {})
 *   connect {timeout?}, close {}                connect again after close to reconnect
 *   hostInfo hostCapabilities hostContext {}    -> what the handshake brought, null before it
 *   registerTool {name, behaviour?, value?, title?, description?, inputSchema?, outputSchema?,
 *                 annotations?, _meta?}         schemas are JSON Schema
 *   enable disable remove {name}                on the newest handle of that name, also a stale one
 *   update {name, fields}                       null clears a field
 *   onlisttools {pages: [[TOOL, ...], ...]}     a static list in pages, cursors "1", "2", ...
 *   oncalltool {behaviour, value?}              one behaviour for every name
 *   sendToolListChanged {}
 *   callServerTool {params, timeout?, progress?}    progress: true reports `progress` events {call}
 *   readServerResource listServerResources createSamplingMessage sendMessage updateModelContext
 *   openLink downloadFile requestDisplayMode    each {params?, timeout?}
 *   sendLog sendSizeChanged requestTeardown     each {params?}
 *   onteardown {result? | error?, hold?}, or {unset: true}     hold waits for release {key: "teardown"}
 *
 * Behaviours of a tool (`value` as each needs it):
 *   echo        text: the arguments as JSON          text        text: value
 *   structured  structuredContent: value, or the arguments; text: the same as JSON
 *   result      value is the whole result            undefined   returns nothing at all
 *   isError     isError with text value              throw       throws Error(value)
 *   throwCode   throws {code, message, data}         slow        waits for release {key: TOOL}, then echo
 *   progress    tells each step of value, then echo  callback    callServerTool(value), returns its result
 *
 * Events: toolinput toolinputpartial toolresult toolcancelled hostcontextchanged teardown {params};
 * calltool {phase: "start"|"cancelled", name, arguments, request, progressToken, reason}; progress.
 */
import { fromJsonSchema } from "@modelcontextprotocol/client";

import { onAborted, wireError } from "./wire.mjs";

const EVENTS = [
  "toolinput",
  "toolinputpartial",
  "toolresult",
  "toolcancelled",
  "hostcontextchanged",
];
const REQUESTS = [
  ...["readServerResource", "listServerResources", "createSamplingMessage", "sendMessage"],
  ...["updateModelContext", "openLink", "downloadFile", "requestDisplayMode"],
];

/** What 1.x and 2.x tell a handler about its request, in one shape. */
function requestOf(extra) {
  const { id, signal, _meta, notify } = extra.mcpReq ?? {
    id: extra.requestId,
    signal: extra.signal,
    _meta: extra._meta,
    notify: extra.sendNotification,
  };
  return { id, signal, notify, progressToken: _meta?.progressToken };
}

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
const echo = (args) => text(JSON.stringify(args));

/** JSON Schemas as the Standard Schema objects that registerTool takes; null clears a field. */
function fieldsOf(fields) {
  const given = Object.entries(fields).map(([key, value]) => {
    const isSchema = value && (key === "inputSchema" || key === "outputSchema");
    return [key, isSchema ? fromJsonSchema(value) : (value ?? undefined)];
  });
  return Object.fromEntries(given);
}

/** Makes a View; returns the orders it obeys. */
export function officialView(peer, App) {
  const handles = new Map();
  let made = null;

  function create({ appInfo, capabilities = {}, strict = false } = {}) {
    if (made) throw new Error("the App exists already");
    const info = appInfo ?? { name: "official-view", version: "1.0.0" };
    made = new App(info, capabilities, { autoResize: false, strict });
    for (const event of EVENTS)
      made.addEventListener(event, (params) => peer.emit(event, { params }));
    made.onerror = (error) => peer.emit("error", { message: error.message });
    made.onclose = () => peer.emit("closed");
  }

  function app() {
    if (!made) create();
    return made;
  }

  const BEHAVIOURS = {
    echo: ({ args }) => echo(args),
    text: ({ value }) => text(value),
    structured: ({ value, args }) => ({ ...echo(value ?? args), structuredContent: value ?? args }),
    result: ({ value }) => value,
    undefined: () => undefined,
    isError: ({ value }) => ({ ...text(value), isError: true }),
    throw: ({ value }) => {
      throw new Error(value);
    },
    throwCode: ({ value }) => {
      throw wireError(value);
    },
    slow: async ({ name, args, request }) => {
      await peer.hold(name, request.signal);
      return echo(args);
    },
    progress: async ({ value, args, request: { progressToken, notify } }) => {
      for (const step of progressToken === undefined ? [] : value) {
        await notify({ method: "notifications/progress", params: { progressToken, ...step } });
      }
      return echo(args);
    },
    callback: ({ value }) => app().callServerTool(value),
  };

  /** A function `(name, args, extra)` that reports the call and then behaves as ordered. */
  function behave(behaviour = "echo", value) {
    const act = Object.hasOwn(BEHAVIOURS, behaviour) && BEHAVIOURS[behaviour];
    if (!act) throw new Error(`unknown behaviour ${behaviour}`);
    return async (name, args, extra) => {
      const request = requestOf(extra);
      const { id, signal, progressToken } = request;
      onAborted(signal, () =>
        peer.emit("calltool", {
          phase: "cancelled",
          name,
          request: id,
          reason: String(signal.reason),
        }),
      );
      peer.emit("calltool", { phase: "start", name, arguments: args, request: id, progressToken });
      return act({ name, args, value, request });
    };
  }

  function handle(name) {
    if (!handles.has(name)) throw new Error(`no tool ${name} was ever registered`);
    return handles.get(name);
  }

  function registerTool({ name, behaviour, value, ...config }) {
    const run = behave(behaviour, value);
    // A tool without an input schema is called with the request alone.
    const callback = config.inputSchema
      ? (args, extra) => run(name, args, extra)
      : (extra) => run(name, {}, extra);
    handles.set(name, app().registerTool(name, fieldsOf(config), callback));
  }

  function onteardown({ unset = false, result = {}, error, hold: held }) {
    const answer = async (params, extra) => {
      peer.emit("teardown", { params });
      if (held) await peer.hold("teardown", requestOf(extra).signal);
      if (error) throw wireError(error);
      return result;
    };
    app().onteardown = unset ? undefined : answer;
  }

  return {
    ...peer.orders(app),
    create,
    connect: ({ timeout }) => app().connect(peer.transport(), { timeout }),
    close: () => app().close(),
    hostInfo: () => app().getHostVersion(),
    hostCapabilities: () => app().getHostCapabilities(),
    hostContext: () => app().getHostContext(),
    registerTool,
    enable: ({ name }) => handle(name).enable(),
    disable: ({ name }) => handle(name).disable(),
    remove: ({ name }) => handle(name).remove(),
    update: ({ name, fields }) => handle(name).update(fieldsOf(fields)),
    onlisttools: ({ pages }) => {
      app().onlisttools = async (params) => {
        const page = Number(params?.cursor ?? 0);
        const nextCursor = page + 1 < pages.length ? String(page + 1) : undefined;
        return { tools: pages[page], nextCursor };
      };
    },
    oncalltool: ({ behaviour, value }) => {
      const run = behave(behaviour, value);
      app().oncalltool = (params, extra) => run(params.name, params.arguments ?? {}, extra);
    },
    sendToolListChanged: () => app().sendToolListChanged(),
    callServerTool: ({ params, timeout, progress = false }, { id, signal }) => {
      const watch = progress && {
        onprogress: (step) => peer.emit("progress", { call: id, ...step }),
      };
      return app().callServerTool(params, { timeout, signal, ...watch });
    },
    ...Object.fromEntries(
      REQUESTS.map((name) => [
        name,
        ({ params, timeout }, { signal }) => app()[name](params, { timeout, signal }),
      ]),
    ),
    sendLog: ({ params }) => app().sendLog(params),
    sendSizeChanged: ({ params }) => app().sendSizeChanged(params),
    requestTeardown: ({ params }) => app().requestTeardown(params),
    onteardown,
  };
}
