/**
 * The official host in a page: `AppBridge` over its own `PostMessageTransport`, for a test to drive
 * through `window.bridge`. What the View says is kept in `window.events`.
 */
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const frame = document.querySelector("iframe");
const capabilities = { openLinks: {}, logging: {}, serverTools: {} };
const hostContext = { theme: "dark", availableDisplayModes: ["inline", "fullscreen"] };

window.events = [];
window.calls = {};
window.mount = async (url) => {
  const bridge = new AppBridge(null, { name: "official", version: "2" }, capabilities, { hostContext });
  window.bridge = bridge;
  const initialized = new Promise((resolve) => { bridge.oninitialized = resolve; });
  bridge.onsizechange = (params) => events.push(["size", params]);
  bridge.onloggingmessage = (params) => events.push(["log", params]);
  bridge.onrequestteardown = () => events.push(["requestteardown"]);
  bridge.onopenlink = async (params) => { events.push(["openlink", params]); return {}; };
  bridge.onmessage = async (params) => { events.push(["message", params]); return { isError: true }; };
  bridge.onupdatemodelcontext = async (params) => { events.push(["context", params]); return {}; };
  bridge.onrequestdisplaymode = async ({ mode }) => ({ mode });
  bridge.oncalltool = async ({ name, arguments: given }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    return { content: [{ type: "text", text: `server ${name} ${given.a}` }] };
  };
  bridge.setNotificationHandler("notifications/tools/list_changed", () => { events.push(["changed"]); });
  bridge.onerror = (error) => events.push(["error", error.message]);
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = url;
  await initialized;
};

/** What a promise came to, in a form that crosses to the test. */
window.settled = (promise) => promise.then(
  (value) => ({ value }),
  (error) => ({ code: error.code, message: error.message }),
);
