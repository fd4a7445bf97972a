/**
 * The official host: `AppBridge` of @modelcontextprotocol/ext-apps 2.x, driven by a test.
 * The channels and the orders that a View knows, too: see wire.mjs.
 *
 * Orders (PARAMS are the wire's; `timeout` is in milliseconds):
 *   start {hostInfo?, hostCapabilities?, hostContext?, server?}   make the bridge and connect it
 *       server {capabilities, results: {METHOD: RESULT}} puts an MCP server and client behind it
 *   reconnect {same?, ...start}   close, then connect the same bridge or a new one to the same wire
 *   close {}                      close the bridge; the wire stays open
 *   appInfo {}                    -> {info, capabilities}, null before ui/initialize
 *   listTools {params?, timeout?}
 *   listAllTools {timeout?}       -> every tool, following nextCursor
 *   callTool {params, timeout?, progress?, resetTimeoutOnProgress?, maxTotalTimeout?}
 *       progress: true sends a token; each notice is a `progress` event {call, progress, total, ...}
 *   ping {timeout?}
 *   teardownResource {params?, timeout?}
 *   setHostContext {context}, sendHostContextChange {params}
 *   sendToolInput sendToolInputPartial sendToolResult sendToolCancelled sendSandboxResourceReady
 *   sendToolListChanged sendResourceListChanged sendPromptListChanged        each {params?}
 *   answer {method, result? | error? {code?, message, data?}, hold?, progress? [{progress, total}]}
 *       how to answer a request of the View from now on, also before `start`. Each such request is an
 *       event; `hold: true` waits for release {key: METHOD}; `progress` is told before the answer.
 *       Without an `answer` the bridge has no handler, and does what the SDK does then.
 *   unanswer {method}             clear the handler, as `bridge.onX = undefined` does
 *   serverNotify {method, params?}     the MCP server behind the bridge notifies
 *
 * Events: initialized sizechange sandboxready requestteardown loggingmessage toolListChanged ping
 * {params}; progress; for a request of the View {method, params, request, progressToken}: message
 * openlink downloadfile updatemodelcontext requestdisplaymode calltool createsamplingmessage
 * listresources listresourcetemplates readresource listprompts listtools; cancelled {method,
 * request, reason} when the View cancels one; server {method, params} for a request that reached
 * the MCP server.
 */
import { Client, InMemoryTransport } from "@modelcontextprotocol/client";
import { AppBridge } from "@modelcontextprotocol/ext-apps/app-bridge";

import { onAborted, wireError } from "./wire.mjs";

const EVENTS = ["initialized", "sizechange", "sandboxready", "requestteardown", "loggingmessage"];

/** Requests of a View, and the `on…` setter (also the event's name) that serves them. */
const REQUESTS = {
  "ui/message": "message",
  "ui/open-link": "openlink",
  "ui/download-file": "downloadfile",
  "ui/update-model-context": "updatemodelcontext",
  "ui/request-display-mode": "requestdisplaymode",
  "tools/call": "calltool",
  "sampling/createMessage": "createsamplingmessage",
  "resources/list": "listresources",
  "resources/templates/list": "listresourcetemplates",
  "resources/read": "readresource",
  "prompts/list": "listprompts",
};

const NOTICES = [
  ...["sendToolInput", "sendToolInputPartial", "sendToolResult", "sendToolCancelled"],
  ...["sendSandboxResourceReady", "sendHostContextChange"],
  ...["sendToolListChanged", "sendResourceListChanged", "sendPromptListChanged"],
];

/** Makes a host; returns the orders it obeys. */
export function officialBridge(peer) {
  const answers = new Map();
  const installed = new WeakSet();
  let bridge = null;
  let server = null;
  let lastStart = {};

  function connected() {
    if (!bridge) throw new Error("start the bridge first");
    return bridge;
  }

  async function respond(method, event, params, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    const { result, error, hold: held, progress = [] } = answers.get(method);
    onAborted(mcpReq.signal, () =>
      peer.emit("cancelled", { method, request: mcpReq.id, reason: String(mcpReq.signal.reason) }),
    );
    peer.emit(event, { method, params, request: mcpReq.id, progressToken });
    for (const step of progressToken === undefined ? [] : progress) {
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...step } });
    }
    if (held) await peer.hold(method, mcpReq.signal);
    if (error) throw wireError(error);
    return result;
  }

  function install(target, method) {
    const event = REQUESTS[method];
    if (event) {
      if (installed.has(target[`on${event}`] ?? target)) return;
      const handler = (params, extra) => respond(method, event, params, extra);
      installed.add(handler);
      target[`on${event}`] = handler;
    } else {
      // tools/list has no setter: a host that serves it does so by hand.
      target.removeRequestHandler(method);
      target.setRequestHandler(method, (request, extra) =>
        respond(method, "listtools", request.params, extra),
      );
    }
  }

  /** An MCP server with fixed answers, and the client that a bridge forwards to. */
  async function behind({ capabilities, results }) {
    const { Server } = await import("@modelcontextprotocol/server"); // 0.1 s that few tests need
    server = new Server({ name: "behind", version: "1.0.0" }, { capabilities });
    for (const [method, result] of Object.entries(results)) {
      server.setRequestHandler(method, (request) => {
        peer.emit("server", { method, params: request.params });
        if (result.error) throw wireError(result.error);
        return result;
      });
    }
    const [near, far] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: "host", version: "1.0.0" });
    await Promise.all([server.connect(far), client.connect(near)]);
    return client;
  }

  async function build(args) {
    const { hostInfo, hostCapabilities = {}, hostContext = {}, server: wanted } = args;
    const client = wanted ? await behind(wanted) : null;
    const info = hostInfo ?? { name: "official-host", version: "1.0.0" };
    const made = new AppBridge(client, info, hostCapabilities, { hostContext });
    for (const event of EVENTS)
      made.addEventListener(event, (params) => peer.emit(event, { params }));
    made.setNotificationHandler("notifications/tools/list_changed", (notification) =>
      peer.emit("toolListChanged", { params: notification.params }),
    );
    made.onping = (params) => peer.emit("ping", { params });
    made.onerror = (error) => peer.emit("error", { message: error.message });
    made.onclose = () => peer.emit("closed");
    for (const method of answers.keys()) install(made, method);
    return made;
  }

  async function start(args) {
    lastStart = args;
    bridge = await build(args);
    await bridge.connect(peer.transport());
  }

  return {
    ...peer.orders(connected),
    start,
    reconnect: async ({ same = false, ...changes }) => {
      await connected().close();
      if (same) await bridge.connect(peer.transport());
      else await start({ ...lastStart, ...changes });
    },
    close: () => connected().close(),
    appInfo: () => ({
      info: connected().getAppVersion() ?? null,
      capabilities: bridge.getAppCapabilities() ?? null,
    }),
    listTools: ({ params, timeout }, { signal }) =>
      connected().listTools(params, { timeout, signal }),
    listAllTools: async ({ timeout }, { signal }) => {
      const tools = [];
      let cursor;
      do {
        const params = cursor === undefined ? undefined : { cursor };
        const page = await connected().listTools(params, { timeout, signal });
        tools.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return tools;
    },
    callTool: ({ params, progress = false, ...limits }, { id, signal }) => {
      const onprogress = progress
        ? (step) => peer.emit("progress", { call: id, ...step })
        : undefined;
      return connected().callTool(params, { ...limits, signal, onprogress });
    },
    ping: ({ timeout }, { signal }) => connected().request({ method: "ping" }, { timeout, signal }),
    teardownResource: ({ params = {}, timeout }, { signal }) =>
      connected().teardownResource(params, { timeout, signal }),
    setHostContext: ({ context }) => connected().setHostContext(context),
    answer: ({ method, ...answer }) => {
      if (!REQUESTS[method] && method !== "tools/list") {
        throw new Error(`the bridge cannot serve ${method}`);
      }
      answers.set(method, answer);
      if (bridge) install(bridge, method);
    },
    unanswer: ({ method }) => {
      answers.delete(method);
      if (REQUESTS[method]) connected()[`on${REQUESTS[method]}`] = undefined;
      else connected().removeRequestHandler(method);
    },
    serverNotify: ({ method, params }) => server.notification({ method, params }),
    ...Object.fromEntries(
      NOTICES.map((name) => [name, ({ params = {} }) => connected()[name](params)]),
    ),
  };
}
