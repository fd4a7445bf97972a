/**
 * transom.js: the View's side of MCP Apps, and WebMCP, in one file without dependencies.
 *
 *   const app = new App({ name: "doc-editor", version: "1.0.0" });
 *   app.registerTool("get_selection", { description: "Return the user's selection" },
 *     () => String(getSelection()));
 *   await app.connect();
 *
 * 1. Names are those of @modelcontextprotocol/ext-apps. How tools behave is Transom's, the same as
 *    in Python.
 * 2. Messages are taken from the parent window alone, and only if they are JSON-RPC.
 * 3. What a callback throws stays in the page, unless it is a ToolError or a ProtocolError.
 * 4. It runs under `script-src 'unsafe-inline'`: nothing is evaluated, fetched or loaded.
 * 5. It has a budget of 12 KB, minified, that a test holds it to. So state lives in closures, which
 *    minify best, and the smaller of two ways to say a thing is taken.
 */

/** A tool cannot do what it was asked. The text becomes a result that the model can read. */
class ToolError extends Error {}

/** A JSON-RPC error: throw it to answer with it, catch it when the host answered with it. */
class ProtocolError extends Error {
  constructor(code, message, data) {
    super();
    assign(this, { code, message, data }); // enumerable, so that JSON has all three
  }
}

const { assign, defineProperty, entries, fromEntries, hasOwn: has, keys } = Object;
const { isArray } = Array;
// Taken before a page can put something else in their place. Outside a browser there are none.
const { parent, document: page, navigator: agent } = globalThis;
const is = (type) => (value) => typeof value === type;
const isString = is("string");
const isFunction = is("function");
const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);
const write = JSON.stringify;
const copy = (value) => JSON.parse(write(value));

/** Throw unless a condition holds. `Kind` is a class of errors, or a code of JSON-RPC. */
const must = (condition, text, Kind = Error) => {
  if (!condition) throw isFunction(Kind) ? new Kind(text) : new ProtocolError(Kind, text);
};

// --- JSON Schema --------------------------------------------------------------------------------

const typeOf = (value) =>
  Number.isInteger(value)
    ? "integer"
    : isArray(value)
      ? "array"
      : value === null
        ? "null"
        : typeof value;

/**
 * What is wrong with a value, one by one: `[path, text]`.
 *
 * Held to: type enum const required properties additionalProperties items prefixItems pattern
 * minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems anyOf
 * oneOf allOf not, and $ref within the schema. Other words are for the reader.
 */
function* check(root, node, value, path) {
  if (!isObject(node)) return node || (yield [path, "is not allowed"]);
  const { pattern, $ref, properties = {} } = node;
  const others = node.patternProperties ?? node.additionalProperties ?? true;
  const here = (schema) => check(root, schema, value, path);
  const at = (schema, step) => check(root, schema, value[step], [...path, step]);
  const type = typeOf(value);
  const types = node.type ?? type;
  const values = "const" in node ? [node.const] : node.enum;
  if (values && !values.map((each) => write(each)).includes(write(value))) {
    yield [path, `must be one of ${write(values)}`];
  } else if (!RegExp(type === "integer" ? "integer|number" : type).test(types)) {
    yield [path, `expected ${`${types}`.replaceAll(",", " or ")}, got ${type}`];
  }
  if (isString(value) && pattern && !RegExp(pattern, "u").test(value)) {
    yield [path, `must match the pattern ${pattern}`];
  }
  const [unit, size] = isString(value)
    ? ["Length", [...value].length]
    : isArray(value)
      ? ["Items", value.length]
      : [/r$/.test(type) && "imum", value]; // integer, number
  for (const word in node) {
    const [, open, bound] = RegExp(`^(exclusive)?m(in|ax)${unit}$`, "i").exec(word) ?? [];
    const room = bound && (size - node[word]) * (bound === "in" ? 1 : -1);
    if (room < 0 || (open && room === 0)) {
      yield [path, `must have ${word} ${node[word]}`];
    }
  }

  if (isArray(value)) {
    for (const i of value.keys()) yield* at(node.prefixItems?.[i] ?? node.items ?? true, i);
  }
  if (isObject(value)) {
    for (const name of node.required ?? []) {
      if (!has(value, name)) yield [[...path, name], "is required"];
    }
    for (const name in value) {
      const known = has(properties, name);
      if (known || others) yield* at(known ? properties[name] : others, name);
      else yield [[...path, name], "is not expected"];
    }
  }

  if ($ref) yield* here($ref.split("/").slice(1).reduce((part, step) => part[step], root));
  for (const part of node.allOf ?? []) yield* here(part);
  if ("not" in node && here(node.not).next().done) yield* here(false);
  for (const word of ["anyOf", "oneOf"]) {
    const branches = (node[word] ?? [true])
      .map((part) => [...here(part)])
      .sort((a, b) => a.length - b.length);
    yield* branches[0]; // the one with the fewest faults was probably meant
    if (word === "oneOf" && branches[1]?.length === 0) {
      yield [path, "fits more than one alternative"];
    }
  }
}

/** The first faults as lines such as `- items[2].id: is required`; no text if there are none. */
const describe = (faults) => {
  const lines = new Set();
  for (const [path, text] of faults) {
    const place = path.join(".").replace(/\.?\b(\d+)(?=\.|$)/g, "[$1]");
    lines.add(`\n- ${place && place + ": "}${text.slice(0, 200)}`);
    if (lines.size > 9) break;
  }
  return [...lines].join("");
};

/** Whether a schema accepts objects and nothing else, as far as its outside tells. */
const describesObject = ({ type, properties, required, anyOf, oneOf = anyOf, allOf = oneOf }) =>
  type ? `${type}` === "object" : (properties ?? required ?? allOf?.every(describesObject));

/**
 * Make `{ json, parse }` of a JSON Schema or a Standard Schema (zod, Valibot, ArkType, ...).
 * Results that are no object travel as `{ result: value }`, and then `wrapped` is set.
 */
const makeSchema = (source, output) => {
  const standard = source["~standard"];
  const given = standard
    ? (standard.jsonSchema?.[output ? "output" : "input"]({ target: "draft-2020-12" }) ?? {})
    : source;
  must(isObject(given) && !given.then, "A schema is an object");
  const inner = copy(given);
  const wrapped = !describesObject(inner) && keys(inner)[0];
  must(!wrapped || output, "An inputSchema describes an object");
  const json = {
    type: "object",
    ...(wrapped
      ? { properties: { result: inner }, required: ["result"], $defs: inner.$defs }
      : { properties: {}, ...inner }),
  };
  return {
    json,
    wrapped,
    /** The value, with defaults, or as the Standard Schema makes it; throws what is wrong. */
    async parse(value, title, Kind) {
      let faults;
      if (standard) {
        const { issues, value: parsed } = await standard.validate(wrapped ? value.result : value);
        if (!issues) return wrapped ? { result: parsed } : parsed;
        faults = issues.map(({ path = [], message }) => [
          path.map((step) => step.key ?? step),
          message,
        ]);
      }
      const text = describe(faults ?? check(json, json, value, []));
      must(!text, title + text, Kind);
      const defaults = entries(json.properties).map(([name, part]) => [name, part.default]);
      return { ...copy(fromEntries(defaults)), ...value };
    },
  };
};

// --- Results ------------------------------------------------------------------------------------

/** Whether a value is a content block: it has what its type must have. */
const isBlock = (value) =>
  isObject(value) &&
  has(
    value,
    { text: "text", image: "data", audio: "data", resource: "resource", resource_link: "uri" }[
      value.type
    ],
  );
const asBlock = (value) =>
  isBlock(value) ? value : { type: "text", text: isString(value) ? value : write(value) };

/** Tell a result from data that happens to have a key named `content`. */
const isResult = (value) =>
  isObject(value) &&
  (isArray(value.content)
    ? value.content.every(isBlock)
    : "structuredContent" in value || "isError" in value);

/** Make a tool result of whatever a callback returned. What is sent is a copy. */
const toResult = async (value, output) => {
  const given = copy(value ?? (output ? null : "Done."));
  const wrapped = output ? output.wrapped : !isObject(given);
  const result =
    isResult(given) && !output?.json.properties.content
      ? given
      : !output &&
          (isArray(given) ? given[0] && given.every(isBlock) : isString(given) || isBlock(given))
        ? { content: [given].flat().map(asBlock) }
        : { content: [asBlock(given)], structuredContent: wrapped ? { result: given } : given };
  if (output && !result.isError) {
    result.structuredContent = await output.parse(result.structuredContent, "Invalid output:");
  }
  if (!result.content?.[0]) {
    result.content = [result.structuredContent ?? []].flat().map(asBlock);
  }
  return result;
};

// --- App ----------------------------------------------------------------------------------------

const FIELDS =
  "name title description inputSchema outputSchema annotations _meta enabled reason".split(" ");

/** What the host tells: `ui/notifications/tool-input` is the event `toolinput`, and so on. */
const EVENTS = [
  "tool-input",
  "tool-input-partial",
  "tool-result",
  "tool-cancelled",
  "host-context-changed",
];

/** What a View asks and tells, and the method it does it with. */
const REQUESTS = {
  callServerTool: "tools/call",
  listServerTools: "tools/list",
  readServerResource: "resources/read",
  listServerResources: "resources/list",
  createSamplingMessage: "sampling/createMessage",
  sendMessage: "ui/message",
  updateModelContext: "ui/update-model-context",
  openLink: "ui/open-link",
  downloadFile: "ui/download-file",
  requestDisplayMode: "ui/request-display-mode",
  sendLog: "notifications/message",
  sendSizeChanged: "ui/notifications/size-changed",
  requestTeardown: "ui/notifications/request-teardown",
};

let current; // the App that speaks for the page
let automatic; // the same, if it was made for a page that has tools and no App

/**
 * A View's end of the conversation with its host: `new App({ name, version }, capabilities,
 * options)`. The one option is `autoResize`, true unless given.
 *
 * Handlers: `ontoolinput ontoolinputpartial ontoolresult ontoolcancelled onhostcontextchanged`,
 * also through `addEventListener`; `onlisttools oncalltool onteardown onerror onclose`.
 */
function App(info, capabilities = {}, options = {}) {
  if (automatic) return automatic.become(info, capabilities, options);
  const app = this;
  const tools = new Set();
  const listeners = {};
  const pending = new Map(); // requests of ours that wait for an answer: what to do with it
  const running = new Map(); // requests of the host that wait for ours: how to stop
  let nextId = 0;
  let declared, host, ready, wanted, due, observer;
  current = app;

  /** Tell of an error that nobody else hears of. Async, so that it never throws. */
  const report = async (error) => (app.onerror ?? console.error)(error);

  /** Run a handler; what goes wrong is reported, and nobody else's problem. */
  const run = async (handler, ...given) => {
    try {
      return await handler?.(...given);
    } catch (error) {
      report(error);
    }
  };

  /** What the host is told of an error: no more than was meant for it. */
  const outside = (error, text) =>
    error instanceof ProtocolError ? error : (report(error), new ProtocolError(-32603, text));

  /** Run a callback on behalf of a host: the result, or the error to answer with. */
  const outcome = async (name, callback, output) => {
    try {
      return await toResult(await callback(), output);
    } catch (error) {
      if (error instanceof ToolError) return { content: [asBlock(error.message)], isError: true };
      throw outside(error, `Tool ${name} failed`);
    }
  };

  // --- tools

  const find = (name) => [...tools].find((tool) => tool.name === name);

  /** The browser's own tools: what the page registered past us, and ours. */
  const foreign = async () =>
    ((await modelContext.getTools?.().catch(() => {})) ?? []).filter(
      (tool) => tool.window === window,
    );

  /** The tools have changed: tell the host, once for all that changes in this turn. */
  const told = () => {
    if (!ready || !declared.tools?.listChanged || due) return;
    due = true;
    queueMicrotask(() => due && tell());
  };

  const tell = () => {
    due = false;
    if (ready) send({ method: "notifications/tools/list_changed", params: {} });
  };

  /**
   * Add a tool; its handle. What a handle says now is what hosts see and what calls are checked
   * against. Setting a field is an update with it. Once the tool is removed, its handle does
   * nothing and tells nobody.
   */
  const add = (config, callback) => {
    let fields = { enabled: true };
    let input, output;

    /** Change all that is given, or nothing. */
    const apply = (changes) => {
      const next = { ...fields };
      for (const field of FIELDS) {
        if (has(changes, field)) next[field] = changes[field] ?? undefined;
      }
      const { name, inputSchema, outputSchema } = next;
      must(isString(name) && /^[\w.-]{1,128}$/.test(name), `Not a tool name: ${name}`);
      must(name === fields.name || !find(name), `Tool ${name} is already registered`);
      const lazy = isFunction(inputSchema) && !inputSchema["~standard"];
      must(!lazy || inputSchema.constructor === Function, "A lazy inputSchema is sync");
      [input, output, fields] = [
        lazy ? undefined : makeSchema(inputSchema ?? {}),
        outputSchema && makeSchema(outputSchema, true),
        next,
      ];
    };

    /** The input schema as it is now; undefined if a lazy one cannot be made. */
    const schema = () => {
      try {
        const made = input ?? makeSchema(fields.inputSchema());
        tool.error = undefined;
        return made;
      } catch (error) {
        if (`${error}` !== `${tool.error}`) report(error);
        tool.error = error;
      }
    };

    const entry = (known) => {
      const { enabled, reason, ...rest } = fields;
      return enabled && { ...rest, inputSchema: known?.json, outputSchema: output?.json };
    };

    const changed = (listed) => {
      if (listed) told();
      mirror(tool);
    };

    const tool = {
      enable: () => tool.update({ enabled: true, reason: undefined }),
      /** Hide it from hosts and refuse calls, saying why. It stays registered. */
      disable: (reason) => tool.update({ enabled: false, reason }),
      /** Change what is given; undefined takes a field away. An error changes nothing. */
      update(changes) {
        if (!tools.has(tool)) return;
        const before = write(entry(input));
        apply(changes);
        changed(
          write(entry(input)) !== before || (fields.enabled && isFunction(changes.inputSchema)),
        );
      },
      remove() {
        tool.disable();
        tools.delete(tool);
      },
      /** Its entry in a listing; nothing if it has none now. */
      definition() {
        const known = fields.enabled && schema();
        return known && entry(known);
      },
      /** Run it for a host; the result to answer with. */
      call: (given, extra, signal) =>
        outcome(
          fields.name,
          async () => {
            const { name, enabled, reason } = fields;
            extra ??= makeExtra(signal);
            must(enabled, `Tool ${name} is disabled${reason ? `: ${reason}` : ""}`, ToolError);
            const known = schema();
            must(known, `Tool ${name} is unavailable right now`, ToolError);
            extra.arguments = await known.parse(
              given,
              `Invalid arguments for tool ${name}:`,
              ToolError,
            );
            return callback(extra.arguments, extra);
          },
          output,
        ),
    };
    for (const field of FIELDS) {
      defineProperty(tool, field, {
        get: () => fields[field],
        set: (value) => tool.update({ [field]: value }),
      });
    }
    apply(config);
    tools.add(tool);
    changed(fields.enabled);
    return tool;
  };

  // --- what the host says

  const list = async ({ cursor = "0" }, extra) => {
    must(/^\d+$/.test(cursor), "Invalid cursor", -32602);
    const rows = [...tools].flatMap((tool) => tool.definition() || []);
    const more = ({ inputSchema = { type: "object" }, ...row }) =>
      find(row.name) || rows.push({ ...row, inputSchema });
    let next;
    do {
      const given = await app.onlisttools?.({ cursor: next }, extra);
      (given?.tools ?? given ?? []).map(more);
      next = given?.nextCursor;
    } while (next && rows.length < 1e4);
    for (const { window, ...row } of await foreign()) more(row);
    const end = +cursor + 100;
    return { tools: rows.slice(cursor, end), nextCursor: rows[end] && `${end}` };
  };

  const call = async (params, extra) => {
    const { name, task } = params;
    params.arguments ??= {};
    must(isString(name) && isObject(params.arguments), "Invalid params", -32602);
    must(!task, `Tool ${name} cannot run as a task`, -32601);
    const tool = find(name);
    if (tool) return tool.call(params.arguments, extra);
    const other = (await foreign()).find((each) => each.name === name);
    must(other || app.oncalltool, `Tool ${name} not found`, -32602);
    return outcome(name, () =>
      other
        ? modelContext.executeTool(other, params.arguments, extra)
        : app.oncalltool(params, extra),
    );
  };

  const methods = {
    __proto__: null,
    ping: () => ({}),
    "ui/resource-teardown": async (params, extra) =>
      Object(await run(app.onteardown, params, extra)),
    "tools/list": list,
    "tools/call": call,
    "notifications/cancelled": ({ requestId, reason }) => running.get(requestId)?.abort(reason),
    "notifications/progress": (params) => pending.get(params.progressToken)?.({ params }),
  };
  for (const name of EVENTS) {
    const event = name.replaceAll("-", "");
    const all = (listeners[event] = new Set());
    methods["ui/notifications/" + name] = (params) => {
      if (host && /^h/.test(name)) {
        const next = (host.hostContext = { ...host.hostContext, ...params });
        for (const key in next) if (next[key] === null) delete next[key];
      }
      if (/lt$/.test(name)) params.content ??= [];
      for (const handler of [app["on" + event], ...all]) run(handler, params);
    };
  }

  // --- messages

  const send = (message) => {
    must(declared, "Not connected");
    parent.postMessage(copy({ jsonrpc: "2.0", ...message }), "*");
  };

  const receive = ({ source, data }) =>
    source === parent &&
    data?.jsonrpc === "2.0" &&
    run(() => {
      const text = write(data);
      const message = text.length > 2 ** 24 ? {} : JSON.parse(text);
      const { id, method, params = {}, result, error } = message;
      const silent = id === undefined;
      must(
        isObject(params) &&
          (method ? /notif/.test(method) === silent : isObject(result ?? error)) &&
          (silent || isString(id) || Number.isSafeInteger(id)),
        "Invalid message",
      );
      if (method) return silent ? methods[method]?.(params) : serve(method, params, id);
      must(pending.has(id), `Unknown response: ${id}`);
      pending.get(id)(message);
    });

  /** What a callback may use while it runs. */
  const makeExtra = (signal, id, method, _meta = {}) => {
    const notify = async (notice) => signal.aborted || send(notice);
    return {
      signal,
      mcpReq: { id, method, _meta, signal, notify },
      /** Tell the host how far the work is, if it asked to know. */
      sendProgress: async (progress, total, message) =>
        has(_meta, "progressToken") &&
        notify({
          method: "notifications/progress",
          params: { ..._meta, progress, total, message },
        }),
    };
  };

  const serve = async (method, params, id) => {
    must(!running.has(id), `Id ${id} is in use`);
    const control = new AbortController();
    const { signal } = control;
    let answer;
    running.set(id, control);
    try {
      must(running.size <= 1024, "Too many requests", -32000);
      must(
        methods[method] && (declared.tools || !/^tools/.test(method)),
        "Method not found",
        -32601,
      );
      answer = {
        result: copy(await methods[method](params, makeExtra(signal, id, method, params._meta))),
      };
    } catch (problem) {
      answer = { error: outside(problem, "Internal error") };
    }
    running.delete(id);
    if (!signal.aborted) send({ id, ...answer });
  };

  /** Ask the host. Progress begins the waiting anew. */
  const ask = (method, params, { timeout = 60_000, signal, onprogress } = {}) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = nextId++;
      const quit = (problem) => {
        if (!pending.has(id)) return;
        send({
          method: "notifications/cancelled",
          params: { requestId: id, reason: `${problem}` },
        });
        settle({ problem });
      };
      const wait = () =>
        setTimeout(quit, timeout, Error(`${method}: no answer within ${timeout} ms`));
      const settle = ({ result, error, problem, params: progress }) => {
        clearTimeout(timer);
        if (progress) {
          timer = wait();
          run(onprogress, progress);
        } else {
          pending.delete(id);
          if (result) resolve(result);
          else reject(problem ?? assign(new ProtocolError(), error));
        }
      };
      if (onprogress) params = { ...params, _meta: { ...params?._meta, progressToken: id } };
      send({ id, method, params });
      let timer = wait();
      pending.set(id, settle);
      signal?.addEventListener("abort", () => quit(signal.reason));
    });

  // --- what the page uses

  for (const [name, method] of entries(REQUESTS)) {
    app[name] = async (params = {}, options) => {
      if (/notif/.test(method)) return send({ method, params });
      const { hostCapabilities: { sampling } = {}, hostContext = {} } = host ?? {};
      const { availableDisplayModes: modes } = hostContext;
      must(
        /^cr/.test(name)
          ? sampling && (!params.tools || sampling.tools)
          : !/^req/.test(name) || !modes || modes.includes(params.mode),
        "Not offered",
      );
      if (/^call/.test(name)) options = { onprogress() {}, ...options };
      return ask(method, params, options).catch((error) => {
        // Some hosts refuse in this form, others in that; a page gets one of them.
        if (error.code !== -32000 || !/^ui\/[dmou]/.test(method)) throw error;
        return { isError: true, ...error };
      });
    };
  }
  defineProperty(app, "tools", { get: () => [...tools] });
  assign(app, {
    /**
     * Offer a tool to the host; its handle. The callback gets `(args, extra)`, or `(extra)` if
     * there is no inputSchema; then the arguments are `extra.arguments`.
     */
    registerTool(name, config, callback) {
      must(!declared || declared.tools, "tools was not declared before connect()");
      wanted = add(
        { ...config, name },
        config.inputSchema ? callback : (_, extra) => callback(extra),
      );
      return wanted;
    },
    /** Change a tool by name, as WebMCP does: `disabled`, `description`, `inputSchema`. */
    updateTool(name, { disabled, ...changes }) {
      const tool = find(name);
      must(tool, `Tool ${name} is not registered`);
      for (const key in changes) {
        must(
          /^(description|inputSchema)$/.test(key),
          `updateTool cannot change ${key}: use update() of the handle`,
          TypeError,
        );
      }
      tool.update({
        ...changes,
        ...(disabled === tool.enabled && { enabled: !disabled, reason: undefined }),
      });
    },
    /** Tell the host that the tools have changed, now. Counts for all changes of this turn. */
    async sendToolListChanged() {
      must(ready && declared.tools?.listChanged, "Not connected or not declared");
      tell();
    },
    addEventListener(event, handler) {
      must(listeners[event], `Unknown event: ${event}`);
      listeners[event].add(handler);
    },
    removeEventListener(event, handler) {
      listeners[event].delete(handler);
    },
    getHostContext: () => host?.hostContext,
    getHostCapabilities: () => host?.hostCapabilities,
    getHostVersion: () => host?.hostInfo,
    /** Shake hands with the host. Set handlers and register tools first. */
    async connect(_, asked) {
      must(!declared, "App is already connected");
      const offers = wanted || app.onlisttools || app.oncalltool || native;
      const mine = { ...(offers && { tools: { listChanged: true } }), ...capabilities };
      declared = mine;
      addEventListener("message", receive);
      try {
        const found = await ask(
          "ui/initialize",
          { appInfo: info, appCapabilities: mine, protocolVersion: "2026-01-26" },
          asked,
        );
        found.hostContext ??= {};
        must(
          [found.hostInfo, found.hostCapabilities, found.hostContext].every(isObject),
          "Invalid ui/initialize",
        );
        host = found;
        send({ method: "ui/notifications/initialized" });
      } catch (error) {
        if (declared === mine) app.close(); // else there is another connection by now
        throw error;
      }
      ready = true;
      if (options.autoResize ?? true) watchSize();
    },
    /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
    async close() {
      if (!declared) return;
      for (const [id, control] of running) {
        if (!control.signal.aborted) {
          send({ id, error: { code: -32000, message: "The call was cancelled" } });
        }
        control.abort();
      }
      running.clear();
      for (const settle of pending.values()) settle({ problem: Error("Connection closed") });
      removeEventListener("message", receive);
      observer?.disconnect();
      declared = host = ready = undefined;
      run(app.onclose);
    },
    /** Take the name and the options of an App that the page makes after all. */
    become(...given) {
      app.close();
      [info, capabilities, options] = given;
      automatic = undefined;
      return app;
    },
  });

  /** Report the size of the content now and whenever it changes. */
  const watchSize = () => {
    const { documentElement: html, body } = page;
    let last;
    const measure = () => {
      const { height } = html.style;
      html.style.height = "max-content";
      const size = {
        width: innerWidth,
        height: Math.ceil(html.getBoundingClientRect().height),
      };
      html.style.height = height;
      if (ready && last !== (last = write(size))) app.sendSizeChanged(size);
    };
    observer = new ResizeObserver(() => requestAnimationFrame(measure));
    observer.observe(html);
    observer.observe(body);
  };
}

// --- WebMCP -------------------------------------------------------------------------------------

/** The App of the page; one is made, and connected once the page has loaded, if it has none. */
const speaker = () => {
  if (!current) {
    automatic = new App({ name: page.title || "page", version: "1" });
    const connect = () => automatic?.connect().catch(() => {});
    if (page.readyState === "complete") setTimeout(connect);
    else addEventListener("load", connect);
  }
  return current;
};

// `document.modelContext` and `navigator.modelContext`: the browser's own where it has one.
const native = page?.modelContext;
const modelContext = native ?? new EventTarget();
const registerNative = native?.registerTool.bind(native);
const toolChanged = () => modelContext.dispatchEvent(new Event("toolchange"));

/** Tell of a tool that has changed: the browser if it takes tools, else who listens. */
const mirror = (tool) => {
  tool.mirrored?.abort();
  if (!native) return toolChanged();
  const entry = tool.definition();
  if (!entry || entry._meta?.ui?.visibility?.includes("model") === false) return;
  tool.mirrored = new AbortController();
  const register = async () =>
    registerNative(
      {
        ...entry,
        description: entry.description ?? entry.name,
        execute: (given, { signal }) => tool.call(given, undefined, signal),
      },
      tool.mirrored,
    );
  register().catch(toolChanged);
};

assign(modelContext, {
  async registerTool({ name, execute, disabled, ...config }, { signal } = {}) {
    const tool = speaker().registerTool(
      name,
      { inputSchema: {}, ...config, enabled: !disabled },
      execute,
    );
    signal?.addEventListener("abort", tool.remove);
  },
  async unregisterTool(name) {
    speaker().tools.find((tool) => tool.name === name)?.remove();
  },
  async updateTool(name, changes) {
    speaker().updateTool(name, changes);
  },
});
[page, agent].map(
  (place) => place && defineProperty(place, "modelContext", { value: modelContext }),
);

export { App, ProtocolError, ToolError };
