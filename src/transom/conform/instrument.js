/**
 * An instrument: a View that measures its host. It speaks the wire itself, so that it sees exactly
 * what the host sends. `CONFORM` says which View it is and where its probes are:
 *
 *   view        main | declared | failing | waiting
 *   stamp       a word of this run; what comes from the server carries it
 *   tool        the tool that opens this View
 *   timeout     milliseconds after which an answer counts as missing
 *   declared, undeclared   origins that answer, of which the page has declared the first
 *   other       whether a second server with the tool conform_other is connected
 *
 * Outside a browser (no `document`) what needs a page is left out. Ids of verdicts are those of
 * host.toml. A verdict that failed stays failed.
 */
"use strict";
(() => {
  const setup = globalThis.CONFORM;
  const inPage = typeof document !== "undefined";
  const host = window.parent;
  const MODES = ["inline", "fullscreen", "pip"];
  const GATE = 300; // milliseconds between the host's answer and `initialized`
  const MAX_KEPT = 2000;

  // --- verdicts

  const verdicts = new Map();
  let unsent = new Set();

  function decide(id, outcome, detail = "") {
    const order = { skip: 0, pass: 1, fail: 2 };
    const known = verdicts.get(id);
    if (known && order[known.outcome] >= order[outcome]) return;
    verdicts.set(id, { id, outcome, detail: String(detail).slice(0, 300) });
    unsent.add(id);
    show();
  }
  const check = (id, holds, detail) => decide(id, holds ? "pass" : "fail", holds ? "" : detail);
  const skip = (id, reason) => decide(id, "skip", reason);
  const brief = (value) => {
    try {
      return (JSON.stringify(value) ?? String(value)).slice(0, 200);
    } catch {
      return "something that is not JSON";
    }
  };

  // --- the wire

  const waiting = new Map(); // our requests, by id
  const cancelled = new Set();
  const answered = new Set();
  const hostIds = new Set();
  const seen = []; // requests and notifications of the host, in order
  const watchers = new Set();
  let initialized = false;
  let malformedSent = false;
  let nextId = 1;

  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isId = (value) => typeof value === "string" || Number.isInteger(value);
  const post = (message) => host.postMessage(message, "*");
  const notify = (method, params) =>
    post(params === undefined ? { jsonrpc: "2.0", method } : { jsonrpc: "2.0", method, params });
  const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  /** Send a request: `{result}`, `{error}`, or `{silent: true}`. */
  function ask(method, params, id = nextId++) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        waiting.delete(id);
        answered.add(id); // an answer that comes late is late, not one too many
        resolve({ silent: true });
      }, setup.timeout);
      waiting.set(id, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      post({ jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) });
    });
  }

  /** Wait for a message that the host sends by itself; null if it does not come. */
  function arrival(matches, within = setup.timeout) {
    const found = seen.find(matches);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => {
      const end = (message) => {
        clearTimeout(timer);
        watchers.delete(look);
        resolve(message);
      };
      const look = (message) => matches(message) && end(message);
      const timer = setTimeout(end, within, null);
      watchers.add(look);
    });
  }
  const named = (method) => (message) => message.method === method;
  const all = (method) => seen.filter(named(method));

  function wrongEnvelope(message) {
    if (!isObject(message)) return "it is not an object";
    if (message.jsonrpc !== "2.0") return "jsonrpc is not 2.0";
    if ("method" in message) {
      if (typeof message.method !== "string") return "its method is not a string";
      if ("result" in message || "error" in message) return "it is a request and an answer";
      if ("params" in message && !isObject(message.params)) return "its params are not an object";
      return "";
    }
    if (!("id" in message)) return "it has neither a method nor an id";
    if ("result" in message === "error" in message) return "it needs either a result or an error";
    if ("result" in message && !isObject(message.result)) return "its result is not an object";
    if ("error" in message) {
      const { code, message: text } = isObject(message.error) ? message.error : {};
      if (!Number.isInteger(code) || typeof text !== "string")
        return "its error has no code or no message";
    }
    return "";
  }

  function take(message) {
    const toMalformed = [undefined, null, "conform-malformed"].includes(message?.id);
    if (malformedSent && toMalformed && isObject(message?.error)) return; // which a host may send
    const wrong = wrongEnvelope(message);
    check("wire-envelope", !wrong, `${wrong}: ${brief(message)}`);
    if (wrong) return;
    if (!("method" in message)) return takeAnswer(message);
    if (!initialized)
      check("handshake-gate", false, `${message.method} came before ui/notifications/initialized`);
    if (message.method.startsWith("ui/notifications/sandbox-"))
      check("wire-reserved", false, `${message.method} reached the View`);
    if (seen.length < MAX_KEPT) seen.push(message);
    for (const look of [...watchers]) look(message);
    if ("id" in message) takeRequest(message);
    else takeNotification(message);
  }

  function takeAnswer(message) {
    const resolve = waiting.get(message.id);
    if (resolve) {
      waiting.delete(message.id);
      answered.add(message.id);
      resolve("result" in message ? { result: message.result } : { error: message.error });
    } else if (cancelled.has(message.id)) {
      check("call-cancelled-silent", false, "the cancelled request was answered");
    } else if (answered.has(message.id)) {
      check("wire-answers-once", false, `request ${brief(message.id)} was answered again`);
    } else {
      check("wire-answers-once", false, `an answer to ${brief(message.id)}, which was not asked`);
    }
  }

  const pages = [
    { tools: [appTool("conform_view_first")], nextCursor: "second" },
    { tools: [appTool("conform_view_second")] },
  ];
  function appTool(name) {
    const properties = { word: { type: "string" } };
    return {
      name,
      description: "Return the word. A tool of the View that measures this host.",
      inputSchema: { type: "object", properties },
      annotations: { readOnlyHint: true },
    };
  }

  async function takeRequest({ id, method, params = {} }) {
    check("wire-request-ids", isId(id), `an id is ${brief(id)}`);
    check("wire-request-ids", !hostIds.has(id), `the id ${brief(id)} was used twice`);
    hostIds.add(id);
    const answer = (result) => post({ jsonrpc: "2.0", id, result });
    if (method === "ping") answer({});
    else if (method === "tools/list" && setup.view === "main")
      answer(params.cursor === "second" ? pages[1] : pages[0]);
    else if (method === "tools/call" && setup.view === "main") {
      const word = params.arguments?.word;
      check("app-tools-called", word === setup.stamp, `it had ${brief(params.arguments)}`);
      answer({ content: [{ type: "text", text: String(word).slice(0, 200) }] });
      void report();
    } else if (method === "ui/resource-teardown") await tearDown(answer);
    else post({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
  }

  function takeNotification({ method, params = {} }) {
    if (method === "ui/notifications/host-context-changed") {
      checkContext(params);
      if (params.theme !== undefined) {
        check("context-changed", true);
        void report();
      }
    } else if (method === "ui/notifications/tool-input") {
      check("input-once", all(method).length === 1, "it came again");
    } else if (method === "ui/notifications/tool-input-partial") {
      const late = all("ui/notifications/tool-input").length > 0;
      check("input-partial-stops", !late, "one came after ui/notifications/tool-input");
    } else if (method === "ui/notifications/tool-result") {
      check("result-once", all(method).length === 1, "it came again");
    }
  }

  // --- the handshake

  async function shakeHands() {
    const declares = setup.view === "main";
    const version = setup.view === "declared" ? "1999-01-01" : "2026-01-26";
    const answer = await ask("ui/initialize", {
      appInfo: { name: `transom-conform-${setup.view}`, version: "1.0.0" },
      appCapabilities: {
        ...(declares ? { tools: { listChanged: true } } : {}),
        availableDisplayModes: declares ? ["inline", "fullscreen"] : ["inline"],
      },
      protocolVersion: version,
    });
    const { result } = answer;
    const told = isObject(result);
    check("handshake-answered", told, answer.silent ? "there was no answer" : brief(answer.error));
    if (!told) return null;
    const given = result.protocolVersion;
    if (version === "2026-01-26")
      check("handshake-version", given === version, `protocolVersion is ${brief(given)}`);
    else {
      const other = typeof given === "string" && given !== version;
      check("handshake-other-version", other, `protocolVersion is ${brief(given)}`);
    }
    const { name, version: own } = isObject(result.hostInfo) ? result.hostInfo : {};
    const introduced = typeof name === "string" && typeof own === "string";
    check("handshake-host-info", introduced, `hostInfo is ${brief(result.hostInfo)}`);
    const capabilities = isObject(result.hostCapabilities) ? result.hostCapabilities : {};
    const known = ["openLinks", "serverTools", "serverResources", "logging", "sandbox"];
    const odd = known.filter((key) => key in capabilities && !isObject(capabilities[key]));
    const shaped = isObject(result.hostCapabilities) && odd.length === 0;
    check("handshake-capabilities", shaped, `hostCapabilities is ${brief(result.hostCapabilities)}`);
    check("handshake-context", isObject(result.hostContext), "there is no hostContext");
    const context = isObject(result.hostContext) ? result.hostContext : {};
    checkContext(context, true);
    await pause(GATE);
    check("handshake-gate", true);
    initialized = true;
    notify("ui/notifications/initialized", {});
    return { capabilities, context };
  }

  function checkContext(context, whole = false) {
    const given = (key, id, holds) => {
      if (!(key in context)) return whole && skip(id, `the host gives no ${key}`);
      let held = false;
      try {
        held = holds(context[key]);
      } catch {
        /* it does not hold */
      }
      return check(id, held, `${key} is ${brief(context[key])}`);
    };
    const oneOf = (values) => (value) => values.includes(value);
    const isText = (value) => typeof value === "string";
    const isNumber = (value) => typeof value === "number" && Number.isFinite(value) && value >= 0;
    given("theme", "context-theme", oneOf(["light", "dark"]));
    given("displayMode", "context-display-mode", oneOf(MODES));
    given("availableDisplayModes", "context-available-modes", (modes) => {
      const current = context.displayMode;
      return (
        Array.isArray(modes) &&
        modes.every(oneOf(MODES)) &&
        (current === undefined || modes.includes(current))
      );
    });
    given("containerDimensions", "context-dimensions", (dimensions) => {
      const keys = ["width", "height", "maxWidth", "maxHeight"];
      const both = (side, most) => side in dimensions && dimensions[most] !== undefined;
      const numbers = keys.every((key) => dimensions[key] === undefined || isNumber(dimensions[key]));
      return (
        isObject(dimensions) &&
        numbers &&
        !both("width", "maxWidth") &&
        !both("height", "maxHeight")
      );
    });
    given("toolInfo", "context-tool-info", ({ tool }) => {
      const name = tool.name;
      const same = name === setup.tool || name.endsWith(setup.tool);
      return same && isObject(tool.inputSchema);
    });
    given("locale", "context-locale", (tag) => isText(tag) && Intl.getCanonicalLocales(tag).length);
    given("timeZone", "context-time-zone", (timeZone) => {
      return isText(timeZone) && !!new Intl.DateTimeFormat("en", { timeZone });
    });
    given("platform", "context-platform", oneOf(["web", "desktop", "mobile"]));
    given("deviceCapabilities", "context-device", (device) => {
      const flag = (value) => value === undefined || typeof value === "boolean";
      return isObject(device) && flag(device.touch) && flag(device.hover);
    });
    given("safeAreaInsets", "context-safe-area", (area) => {
      return ["top", "right", "bottom", "left"].every((side) => isNumber(area[side]));
    });
    given("styles", "context-styles", ({ variables = {}, css = {} }) => {
      const standard = /^--(color-(background|text|border|ring)|font|border-(radius|width)|shadow)-/;
      const wrong = Object.entries(variables).filter(
        ([name, value]) => !standard.test(name) || !(value === undefined || isText(value)),
      );
      return wrong.length === 0 && (css.fonts === undefined || isText(css.fonts));
    });
  }

  // --- what the tool was called with and returned

  const equal = (one, other) => canonical(one) === canonical(other);
  function canonical(value) {
    if (Array.isArray(value)) return `[${value.map(canonical)}]`;
    if (!isObject(value)) return JSON.stringify(value) ?? "undefined";
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)}}`;
  }

  async function checkData() {
    const input = await arrival(named("ui/notifications/tool-input"));
    check("input-sent", input !== null, "it did not come");
    if (setup.view === "waiting") return;
    const result = await arrival(named("ui/notifications/tool-result"));
    check("result-sent", result !== null, "it did not come");
    if (!result) return;
    if (input) {
      const before = seen.indexOf(input) < seen.indexOf(result);
      check("result-order", before, "the result came before the input");
    }
    const { content, structuredContent, isError, _meta } = result.params ?? {};
    const text = isObject(content?.[0]) ? content[0].text : undefined;
    let sent = {};
    try {
      sent = JSON.parse(text);
    } catch {
      /* content that is not what the server returned */
    }
    const whole = sent.stamp === setup.stamp && content.length === 1;
    check("result-content", whole, `content is ${brief(content)}`);
    if (setup.view === "failing") {
      check("result-error", isError === true, `isError is ${brief(isError)}`);
      const empty = isObject(input?.params?.arguments) && !Object.keys(input.params.arguments).length;
      if (input) check("input-empty", empty, `params are ${brief(input.params)}`);
      return;
    }
    const structured = structuredContent?.stamp === setup.stamp;
    check("result-structured", structured, `structuredContent is ${brief(structuredContent)}`);
    const meta = _meta?.["conform/stamp"] === setup.stamp;
    check("result-meta", meta, `_meta is ${brief(_meta)}`);
    const received = sent.received ?? structuredContent?.received;
    if (input && received) {
      const same = equal(input.params?.arguments, received);
      check("input-arguments", same, `${brief(input.params?.arguments)}, not ${brief(received)}`);
    }
    check("input-once", all("ui/notifications/tool-input").length <= 1, "it came again");
    check("input-partial-stops", true);
  }

  // --- the server behind the host

  const callTool = (name, args, extra = {}) =>
    ask("tools/call", { name, arguments: args, ...extra });
  const rejected = (answer) => !!answer.error || answer.result?.isError === true;
  const outcome = (answer) => (answer.silent ? "there was no answer" : brief(answer));

  async function checkCalls({ serverTools }) {
    const value = { text: "Grüße 你好 🎹", nested: { list: [1, 2.5, null, true, ""] }, zero: 0 };
    const answer = await callTool("conform_echo", { value });
    const works = !!answer.result && !answer.result.isError;
    const ids = [
      ...["call-arguments", "call-result", "call-tool-error", "call-protocol-error"],
      ...["call-unknown-tool", "call-concurrent", "call-declared", "call-progress"],
      ...["call-cancelled", "call-cancelled-silent", "visibility-app", "visibility-default"],
      ...["list-changed-tools", "list-changed-resources"],
    ];
    if (!serverTools && !works) {
      for (const id of ["call-forwarded", ...ids]) skip(id, "the host forwards no calls");
      return false;
    }
    check("call-forwarded", works, outcome(answer));
    check("visibility-app", works, outcome(answer));
    if (!works) {
      for (const id of ids) skip(id, "calls are not forwarded");
      return false;
    }
    check("call-declared", !!serverTools, "hostCapabilities has no serverTools");
    const { structuredContent: given = {}, content, _meta } = answer.result;
    check("call-arguments", equal(given.received, { value }), `it received ${brief(given.received)}`);
    const same = given.stamp === setup.stamp && content?.[0]?.text === setup.stamp;
    check("call-result", same && _meta?.["conform/stamp"] === setup.stamp, brief(answer.result));
    const failed = await callTool("conform_fail", {});
    check("call-tool-error", failed.result?.isError === true, outcome(failed));
    const broken = await callTool("conform_error", {});
    check("call-protocol-error", !!broken.error, outcome(broken));
    const unknown = await callTool("conform_no_such_tool", {});
    check("call-unknown-tool", rejected(unknown), outcome(unknown));
    const words = ["a", "b", "c", "d", "e"];
    const answers = await Promise.all(words.map((word) => callTool("conform_echo", { word })));
    const own = answers.every(
      ({ result }, index) => result?.structuredContent?.received?.word === words[index],
    );
    check("call-concurrent", own, brief(answers));
    const plain = await callTool("conform_default", {});
    check("visibility-default", !!plain.result && !plain.result.isError, outcome(plain));
    return true;
  }

  async function checkVisibility() {
    const hidden = await callTool("conform_model_only", {});
    check("visibility-model", rejected(hidden), outcome(hidden));
    const nobody = await callTool("conform_nobody", {});
    check("visibility-nobody", rejected(nobody), outcome(nobody));
    if (!setup.other) return skip("visibility-other-server", "needs a second server");
    const other = await callTool("conform_other", {});
    return check("visibility-other-server", rejected(other), outcome(other));
  }

  async function checkProgressAndCancelling() {
    const token = `${setup.stamp}-progress`;
    const progress = (message) =>
      message.method === "notifications/progress" && message.params?.progressToken === token;
    await callTool("conform_progress", {}, { _meta: { progressToken: token } });
    check("call-progress", !!(await arrival(progress, 200)), "no progress reached the View");
    const id = nextId++;
    cancelled.add(id);
    const params = { name: "conform_wait", arguments: {} };
    post({ jsonrpc: "2.0", id, method: "tools/call", params });
    await callTool("conform_waits", { state: "started" }); // so that there is something to cancel
    notify("notifications/cancelled", { requestId: id, reason: "measured" });
    const waits = await callTool("conform_waits", { state: "cancelled" });
    const ended = waits.result?.structuredContent?.reached === true;
    check("call-cancelled", ended, "the call went on at the server");
    check("call-cancelled-silent", true);
  }

  async function checkListChanged({ serverTools, serverResources }) {
    const due = [];
    const expect = (id, declared, method) => {
      if (declared) due.push([id, method]);
      else skip(id, "the host does not declare listChanged");
    };
    expect("list-changed-tools", serverTools?.listChanged, "notifications/tools/list_changed");
    const resources = "notifications/resources/list_changed";
    expect("list-changed-resources", serverResources?.listChanged, resources);
    if (!due.length) return;
    await callTool("conform_change", {});
    for (const [id, method] of due)
      check(id, !!(await arrival(named(method))), `${method} did not come`);
  }

  async function checkReading({ serverResources }) {
    const answer = await ask("resources/read", { uri: "conform://text" });
    const contents = answer.result?.contents;
    const works = contents?.[0]?.text === setup.stamp;
    if (!serverResources && !works) {
      for (const id of ["read-forwarded", "read-binary", "read-unknown", "read-declared"])
        skip(id, "the host forwards no reading");
      return;
    }
    check("read-forwarded", works, outcome(answer));
    if (!works) return;
    check("read-declared", !!serverResources, "hostCapabilities has no serverResources");
    const binary = await ask("resources/read", { uri: "conform://binary" });
    check("read-binary", binary.result?.contents?.[0]?.blob === "AAECA/79/g==", outcome(binary));
    const unknown = await ask("resources/read", { uri: "conform://nothing" });
    check("read-unknown", !!unknown.error, outcome(unknown));
  }

  // --- the wire's rules

  /** Whether the host still answers anything. */
  const lives = async () => {
    const asked = [ask("ping"), ask("conform/are-you-there")];
    const answered = asked.map(async (each) => (await each).silent && Promise.reject());
    return Promise.any(answered).then(
      () => true,
      () => false,
    );
  };

  async function checkWire() {
    const ping = await ask("ping");
    check("wire-ping", equal(ping.result, {}), outcome(ping));
    if (ping.result) {
      const text = await ask("ping", undefined, `${setup.stamp}-id`);
      check("wire-string-ids", isObject(text.result), outcome(text));
    }
    const unknown = await ask("conform/no-such-method", {});
    check("wire-unknown-method", unknown.error?.code === -32601, outcome(unknown));
    notify("conform/no-such-notification", { value: 1 });
    check("wire-unknown-notification", await lives(), "the host no longer answers");
    post({ jsonrpc: "2.0", id: 987654, result: {} });
    check("wire-unknown-answer", await lives(), "the host no longer answers");
    const wrong = [["ui/open-link", {}], ["ui/request-display-mode", { mode: "sideways" }]];
    const answers = await Promise.all(wrong.map(([method, params]) => ask(method, params)));
    const refused = answers.every((each, index) => {
      return rejected(each) || (index === 1 && MODES.includes(each.result?.mode));
    });
    check("wire-invalid-params", refused, brief(answers));
    malformedSent = true;
    const malformed = [
      ...["text", 7, null, [], {}, { jsonrpc: "2.0", method: 5 }],
      { jsonrpc: "1.0", id: "conform-malformed", method: "ping" },
      { id: "conform-malformed", method: "ping" },
      { jsonrpc: "2.0", id: {}, method: "ping" },
    ];
    for (const message of malformed) post(message);
    check("wire-malformed", await lives(), "the host no longer answers");
    check("wire-reserved", true);
  }

  async function checkLogging({ logging }) {
    if (!logging) return skip("log-accepted", "the host does not declare logging");
    notify("notifications/message", { level: "info", logger: "conform", data: setup.stamp });
    return check("log-accepted", await lives(), "the host no longer answers");
  }

  // --- display

  async function checkDisplay(context) {
    const current = context.displayMode ?? "inline";
    const offered = context.availableDisplayModes;
    const available = Array.isArray(offered) ? offered : MODES;
    const change = (mode) => (message) =>
      message.method === "ui/notifications/host-context-changed" &&
      message.params?.displayMode === mode;
    const requestMode = async (mode) => {
      const answer = await ask("ui/request-display-mode", { mode });
      const given = answer.result?.mode;
      check("display-answer", MODES.includes(given), outcome(answer));
      return given;
    };
    const supported = setup.view === "main" ? ["inline", "fullscreen"] : ["inline"];
    for (const mode of MODES.filter((each) => each !== current)) {
      const given = await requestMode(mode);
      if (!MODES.includes(given)) continue;
      const undeclared = !supported.includes(given);
      check("display-undeclared", !undeclared, `the View is ${given}, which it did not declare`);
      if (given !== mode) {
        const kept = given === current;
        check("display-unavailable", kept, `the answer is ${given}, and the mode was ${current}`);
      } else if (!undeclared) {
        check("display-notified", !!(await arrival(change(mode))), `${mode} was not announced`);
        await requestMode(current);
      }
      if (given === mode && !available.includes(mode))
        check("display-unavailable", false, `${mode} is not in availableDisplayModes`);
    }
    for (const id of ["display-unavailable", "display-notified"])
      skip(id, "no request led to that");
  }

  async function checkSizes(context) {
    const dimensions = isObject(context.containerDimensions) ? context.containerDimensions : {};
    if (!inPage) skip("size-applied", "needs a browser");
    else if (context.displayMode && context.displayMode !== "inline")
      skip("size-applied", "the View is not inline");
    else if (dimensions.height !== undefined) skip("size-applied", "the host's height is fixed");
    else {
      const wanted = window.innerHeight === 223 ? 247 : 223;
      const resized = new Promise((resolve) => {
        const look = () => window.innerHeight === wanted && resolve(true);
        window.addEventListener("resize", look);
        setTimeout(resolve, setup.timeout, false);
      });
      notify("ui/notifications/size-changed", { width: window.innerWidth, height: wanted });
      const held = await resized;
      check("size-applied", held, `it is ${window.innerHeight} high, not ${wanted}`);
    }
    for (const height of [-5, 0, 1e12, null, "tall"])
      notify("ui/notifications/size-changed", { width: 300, height });
    const alive = await lives();
    const bounded = !inPage || window.innerHeight < 1e6;
    check("size-absurd", alive && bounded, alive ? "the frame is huge" : "the host is silent");
    notify("ui/notifications/size-changed", { width: 300, height: 300 });
  }

  // --- links, messages, the model's context

  async function checkRequests() {
    const link = await ask("ui/open-link", { url: `${setup.undeclared}/opened/${setup.stamp}` });
    check("link-answered", !link.silent, "there was no answer");
    if (rejected(link)) skip("link-opened", `the host refused: ${outcome(link)}`);
    const script = await ask("ui/open-link", { url: "javascript:alert(1)" });
    check("link-scheme", rejected(script), outcome(script));
    const say = (content) => ask("ui/message", { role: "user", content });
    const message = await say({ type: "text", text: `${setup.stamp}-message` });
    const code = message.error?.code;
    const held = !message.silent && code !== -32602 && code !== -32601;
    if (code === -32601) skip("message-answered", "the host has no ui/message");
    else check("message-answered", held, outcome(message));
    if (rejected(message)) skip("message-conversation", `the host refused: ${outcome(message)}`);
    const odd = await say("just text");
    check("message-invalid", rejected(odd), outcome(odd));
    const tell = (text) => ask("ui/update-model-context", { content: [{ type: "text", text }] });
    await tell(`The View's code word is ${setup.stamp}-earlier.`);
    const update = await tell(`The View's code word is ${setup.stamp}-context.`);
    check("model-context-answered", !update.silent, "there was no answer");
    const refused = `the host refused: ${outcome(update)}`;
    if (rejected(update)) for (const id of ["provided", "last"]) skip(`model-context-${id}`, refused);
    const wrong = await ask("ui/update-model-context", { content: "just text" });
    check("model-context-invalid", rejected(wrong), outcome(wrong));
  }

  // --- tools of this View

  async function checkAppTools() {
    const later = ["app-tools-pages", "app-tools-listed-again", "app-tools-called"];
    const first = await arrival(named("tools/list"));
    check("app-tools-listed", first !== null, "tools/list did not come");
    if (!first) for (const id of later) skip(id, "the host lists no tools of Views");
    if (!first) return;
    const second = (message) =>
      message.method === "tools/list" && message.params?.cursor === "second";
    check("app-tools-pages", !!(await arrival(second)), "the second page was not asked for");
    const before = all("tools/list").length;
    notify("notifications/tools/list_changed");
    const again = () => all("tools/list").length > before;
    const came = await arrival((message) => message.method === "tools/list" && again());
    check("app-tools-listed-again", came !== null && again(), "tools/list did not come again");
  }

  // --- the page

  const left = (promise) =>
    Promise.race([promise, pause(setup.timeout).then(() => "nothing happened")]);
  const fetched = (origin) =>
    fetch(`${origin}/probe`).then(
      () => "loaded",
      () => "blocked",
    );
  function loading(name, attributes, parent = document.body) {
    return new Promise((resolve) => {
      const element = document.createElement(name);
      element.onload = () => resolve("loaded");
      element.onerror = () => resolve("blocked");
      Object.assign(element, attributes);
      parent.append(element);
    });
  }
  const image = (origin) => loading("img", { src: `${origin}/image.svg`, alt: "" });
  const style = (origin) => loading("link", { rel: "stylesheet", href: `${origin}/style.css` });
  const script = (origin) => loading("script", { src: `${origin}/script.js` });
  /** A frame that loads says so itself; one that is blocked loads an error page instead. */
  function frame(origin) {
    return new Promise((resolve) => {
      // By its window: in a sandbox without allow-same-origin, its origin is "null".
      window.addEventListener("message", ({ data, source }) => {
        const made = document.querySelector("iframe");
        if (data === "conform-frame" && source === made?.contentWindow) resolve("loaded");
      });
      document.addEventListener("securitypolicyviolation", (event) => {
        if (event.effectiveDirective === "frame-src" && event.blockedURI.startsWith(origin))
          resolve("blocked");
      });
      void loading("iframe", { src: `${origin}/frame.html` });
    });
  }

  async function checkIsolation() {
    const reach = (read) => {
      try {
        return read() ? "reached" : "nothing";
      } catch {
        return "refused";
      }
    };
    let sandboxed;
    try {
      sandboxed = window.frameElement?.hasAttribute("sandbox") ?? window.parent !== window;
    } catch {
      sandboxed = true; // its frame is of another origin
    }
    if (sandboxed && reach(() => window.frameElement) !== "reached") {
      try {
        document.domain = document.domain;
        sandboxed = window.origin === "null";
      } catch {
        sandboxed = true;
      }
    }
    check("isolation-frame", sandboxed, "its frame has no sandbox attribute");
    const reached = reach(() => window.top.document) === "reached";
    check("isolation-host", !reached, "the host's document can be read");
    const origins = [...(window.location.ancestorOrigins ?? [])];
    const top = origins.at(-1);
    if (!top?.startsWith("http"))
      for (const id of ["isolation-proxy", "isolation-origin"]) skip(id, "the host is no web page");
    else {
      check("isolation-proxy", origins.length > 1, "the View's parent is the host's page");
      check("isolation-origin", origins[0] !== top, `both are ${top}`);
    }
  }

  async function checkDefaultPolicy() {
    const blocked = async (id, promise) => {
      const what = await left(promise);
      check(id, what !== "loaded", `${setup.undeclared} was reached`);
    };
    const data = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
    const local = await left(loading("img", { src: data, alt: "" }));
    const styled = getComputedStyle(document.body).getPropertyValue("--conform").trim() === "styled";
    check("csp-inline", local === "loaded" && styled, `data: ${local}; inline style: ${styled}`);
    await Promise.all([
      blocked("csp-default-connect", fetched(setup.undeclared)),
      blocked("csp-default-images", image(setup.undeclared)),
      blocked("csp-default-styles", style(setup.undeclared)),
      blocked("csp-default-scripts", script(setup.undeclared)),
      blocked("csp-default-frames", frame(setup.undeclared)),
    ]);
    let evaluated = false;
    try {
      evaluated = new Function("return true")();
    } catch {
      /* it is blocked */
    }
    check("csp-default-eval", !evaluated, "code in a string was run");
    const violated = (directive) =>
      new Promise((resolve) => {
        document.addEventListener("securitypolicyviolation", (event) => {
          if (event.effectiveDirective === directive) resolve("blocked");
        });
      });
    const objects = violated("object-src");
    const object = loading("object", { data: `${setup.undeclared}/frame.html`, type: "text/html" });
    check("csp-objects", (await left(Promise.race([objects, object]))) !== "loaded", "one was loaded");
    const base = document.createElement("base");
    base.href = `${setup.undeclared}/`;
    document.head.append(base);
    check("csp-base", !document.baseURI.startsWith(setup.undeclared), "the base was changed");
    base.remove();
    const allowed = (feature) => {
      const policy = document.permissionsPolicy ?? document.featurePolicy;
      return policy ? policy.allowsFeature(feature) : undefined;
    };
    const features = ["camera", "microphone", "geolocation"].filter(allowed);
    if (allowed("camera") === undefined) skip("permissions-undeclared", "the browser cannot tell");
    else check("permissions-undeclared", !features.length, `allowed: ${features}`);
  }

  async function checkDeclaredPolicy({ sandbox }) {
    const { declared, undeclared } = setup;
    const loaded = async (id, promises) => {
      const all = await Promise.all(promises.map(left));
      check(id, all.every((each) => each === "loaded"), `${declared}: ${all}`);
    };
    await loaded("csp-declared-connect", [fetched(declared)]);
    await loaded("csp-declared-resources", [image(declared), style(declared), script(declared)]);
    await loaded("csp-declared-frames", [frame(declared)]);
    const others = await Promise.all([left(fetched(undeclared)), left(script(undeclared))]);
    const none = !others.includes("loaded");
    check("csp-undeclared", none, `${undeclared} was reached`);
    // What the page declares has an entry that would add `img-src *` to a policy it is pasted into.
    const injected = await left(image(undeclared));
    check("csp-injection", injected !== "loaded", "an undeclared image was loaded");
    const policy = document.permissionsPolicy ?? document.featurePolicy;
    const stated = Object.keys(sandbox?.permissions ?? {});
    const names = { clipboardWrite: "clipboard-write" };
    const missing = stated.filter((name) => !policy?.allowsFeature(names[name] ?? name));
    if (!stated.length) skip("permissions-stated", "the host states none");
    else check("permissions-stated", !missing.length, `not allowed: ${missing}`);
  }

  const PAGE_CHECKS = {
    main: [
      ...["isolation-frame", "isolation-host", "isolation-proxy", "isolation-origin", "csp-inline"],
      ...["connect", "images", "scripts", "styles", "frames", "eval"].map((e) => `csp-default-${e}`),
      ...["csp-objects", "csp-base", "permissions-undeclared"],
    ],
    declared: [
      ...["connect", "resources", "frames"].map((each) => `csp-declared-${each}`),
      ...["csp-undeclared", "csp-injection", "permissions-stated"],
    ],
  };

  // --- the end of a View

  let tornDown = false;
  let leftAlone = true;

  async function tearDown(answer) {
    tornDown = true;
    const soon = () => Promise.race([report(), pause(1000)]); // the host may no longer answer
    check("teardown-sent", true);
    await soon();
    await pause(GATE);
    check("teardown-waits", true);
    leftAlone = false; // whoever drives the host may end it with this report
    await soon();
    answer({});
  }
  function onGone() {
    if (!initialized || !leftAlone) return;
    if (!tornDown) check("teardown-sent", false, "the View was removed without one");
    else check("teardown-waits", false, "the View was removed before it answered");
    beacon({ view: setup.view, stamp: setup.stamp, verdicts: takeUnsent(), done: false });
  }

  // --- reporting

  function takeUnsent() {
    const sent = [...unsent].map((id) => verdicts.get(id));
    unsent = new Set();
    return sent;
  }
  function beacon(report) {
    if (setup.view !== "declared" && inPage) return Promise.resolve(); // it may not connect
    const body = JSON.stringify(report);
    return fetch(`${setup.declared}/report`, { method: "POST", body, keepalive: true }).catch(
      () => undefined,
    );
  }
  async function report(done = false) {
    const sending = { view: setup.view, stamp: setup.stamp, verdicts: takeUnsent(), done };
    const [answer] = await Promise.all([callTool("conform_report", sending), beacon(sending)]);
    if (!answer.result && inPage) document.body.append("The results did not reach the server. ");
  }
  function show() {
    if (!inPage || !document.getElementById("results")) return;
    const rows = [...verdicts.values()].map(({ id, outcome: found, detail }) => {
      const row = document.createElement("tr");
      for (const text of [found, id, detail]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        row.append(cell);
      }
      row.className = found;
      return row;
    });
    document.getElementById("results").replaceChildren(...rows);
  }

  // --- the run

  async function step(run) {
    try {
      await run();
    } catch (error) {
      console.error("transom conform: a check broke off", error);
    }
  }

  async function run() {
    const joined = await shakeHands();
    if (joined === null) {
      await report(true);
      return;
    }
    const { capabilities, context } = joined;
    await step(checkData);
    if (setup.view === "main") {
      await step(checkWire);
      let forwards = false;
      await step(async () => {
        forwards = await checkCalls(capabilities);
      });
      await step(checkVisibility);
      if (forwards) {
        await step(checkProgressAndCancelling);
        await step(() => checkListChanged(capabilities));
      }
      await step(() => checkReading(capabilities));
      await step(() => checkLogging(capabilities));
      await step(() => checkDisplay(context));
      await step(() => checkSizes(context));
      await step(checkRequests);
      await step(checkAppTools);
      if (inPage) {
        await step(checkIsolation);
        await step(checkDefaultPolicy);
      }
    } else if (setup.view === "declared") {
      check("ui-resource-blob", setup.umlaut === "\u00fc", `ü became ${setup.umlaut}`);
      await step(() => checkDisplay(context));
      if (inPage) await step(() => checkDeclaredPolicy(capabilities));
      check("app-tools-undeclared", !all("tools/list").length, "tools/list came");
    } else if (setup.view === "waiting") {
      await report(); // whoever drives the host may cancel the call now
      const end = await arrival(named("ui/notifications/tool-cancelled"));
      check("cancelled-sent", end !== null, "it did not come");
      if (end) await pause(GATE);
      const results = all("ui/notifications/tool-result").length;
      if (end) check("cancelled-no-result", results === 0, "a result came as well");
    }
    if (!inPage) for (const id of PAGE_CHECKS[setup.view] ?? []) skip(id, "needs a browser");
    check("wire-answers-once", true);
    check("wire-request-ids", true);
    await report(true);
    if (inPage) document.body.dataset.done = "true";
  }

  window.addEventListener("message", (event) => {
    if (event.source === host) take(event.data);
  });
  window.addEventListener("pagehide", onGone);
  void run();
})();
