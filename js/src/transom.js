/**
 * transom.js: the View's side of MCP Apps in one file without dependencies. `webmcp.js` beside it
 * adds WebMCP.
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
 * 5. It has a budget of 16 KB, minified, that a test holds it to. So state lives in closures, which
 *    minify best, and the smaller of two ways to say a thing is taken.
 * 6. Transom's own extensions on the wire are named `transom/...`; other hosts can ignore them.
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
// Saved before a page can replace them. Outside a browser there are none.
const { parent, document: page } = globalThis;
const is = (type) => (value) => typeof value === type;
const isString = is("string");
const isFunction = is("function");
const onAbort = (signal, act) => signal?.addEventListener("abort", act);
const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);
const write = JSON.stringify;
const read = JSON.parse;
const copy = (value) => read(write(value));

/** Throw unless a condition holds. `Kind` is a class of errors, or a code of JSON-RPC. */
const must = (condition, text, Kind = Error) => {
  if (!condition) throw isFunction(Kind) ? new Kind(text) : new ProtocolError(Kind, text);
};

const cancelled = (what) => new ProtocolError(-32000, `The ${what} was cancelled`);

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
 * Enforced: type enum const required properties additionalProperties items prefixItems pattern
 * minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems anyOf
 * oneOf allOf not, and $ref within the schema. Other keywords are not enforced.
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

/** Whether a schema accepts only objects, judged by its outermost keywords. */
const describesObject = ({ type, properties, required, anyOf, oneOf = anyOf, allOf = oneOf }) =>
  type ? `${type}` === "object" : (properties ?? required ?? allOf?.every(describesObject));

/**
 * The JSON Schema of a Standard Schema (zod, Valibot, ArkType, ...): what the author gave beside it,
 * else what it says of itself, else what the App's `converter` makes of it.
 */
const toJson = (source, io, beside, converter) => {
  const { vendor, jsonSchema: own } = source["~standard"];
  const options = { target: "draft-2020-12", io, typeMode: io }; // zod reads io, Valibot typeMode
  const json =
    (io === "input" && beside.jsonSchema) ||
    beside.toJSONSchema?.(source, options) ||
    own?.[io](options) ||
    source.toJSONSchema?.(options) ||
    source.toJsonSchema?.(options) ||
    converter?.(source, options);
  must(
    json,
    `A ${vendor} schema that does not say its JSON Schema: give toJSONSchema (as z.toJSONSchema) ` +
      `or jsonSchema beside it, or take a newer ${vendor}`,
  );
  return json;
};

/**
 * Make `{ json, parse }` of a JSON Schema or a Standard Schema.
 * Results that are not objects are sent as `{ result: value }`; then `wrapped` is set.
 */
const makeSchema = (source, output, beside = {}, converter) => {
  const standard = source["~standard"];
  must(
    standard || output || !beside.jsonSchema,
    "jsonSchema goes with a Standard Schema",
  );
  const given = standard
    ? toJson(source, output ? "output" : "input", beside, converter)
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

// --- Problems -----------------------------------------------------------------------------------

// What goes wrong in the page is sent to a host that wants to know, for the page's author; models
// never see it. The sandbox page around a View listens as well, and reports what happens before
// there is a connection. A reported event, or a wrapped console.error, gets this mark, so that
// nothing is reported twice.
const REPORTED = Symbol.for("transom/problem");
let sendProblem; // there is a host that wants to know
let problemCount = 0;

const asText = (value) => {
  try {
    return isString(value) || value instanceof Error ? `${value}` : write(value);
  } catch {
    return typeof value;
  }
};

/** Send a problem, and mark the event it came with; at most a hundred in a page. */
const reportProblem = (kind, message, more, event = {}) => {
  if (!sendProblem || event[REPORTED] || problemCount > 100) return;
  event[REPORTED] = true;
  problemCount += 1;
  sendProblem(
    problemCount > 100
      ? { kind, message: "More than 100 problems" }
      : { kind, message: `${asText(message)}`.slice(0, 2000), ...more },
  );
};

const watchConsole = () => {
  const { error } = console;
  if (error[REPORTED]) return;
  console.error = (...given) => {
    error(...given);
    if (!globalThis[REPORTED]) reportProblem("console", given.map(asText).join(" "));
  };
  console.error[REPORTED] = error;
};

const PROBLEMS = {
  error: ({ error, message, filename: source, lineno: line, colno: column }) => [
    "error",
    error ?? message,
    { source, line, column },
  ],
  unhandledrejection: ({ reason }) => ["rejection", reason, {}],
  securitypolicyviolation: ({
    blockedURI,
    effectiveDirective,
    sourceFile: source,
    lineNumber: line,
    columnNumber: column,
  }) => ["blocked", `${effectiveDirective} blocked ${blockedURI}`, { source, line, column }],
};
for (const type in page && PROBLEMS) {
  addEventListener(type, (event) => reportProblem(...PROBLEMS[type](event), event));
}

// --- App ----------------------------------------------------------------------------------------

const FIELDS = (
  "name title description inputSchema outputSchema annotations _meta execution enabled reason " +
  "jsonSchema toJSONSchema returnsTask"
).split(" ");

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

const MAX_TASKS = 1000;
const DEFAULT_TTL = 600_000;
const DAY = 86_400_000;

/** One page of rows; `cursor` is where it begins. */
const paged = (rows, cursor = "0") => {
  must(/^\d+$/.test(cursor), "Invalid cursor", -32602);
  const end = +cursor + 100;
  return [rows.slice(cursor, end), rows[end] && `${end}`];
};

/**
 * Internal: the interface to `webmcp.js`. `current` is the App that speaks for the
 * page, `automatic` the same if it was made for a page that has tools and no App, `native` the
 * browser's own WebMCP. `browserTool` finds what can take the place of `oncalltool` for one call.
 */
const hooks = { toolChanged() {}, browserTools: () => [], browserTool() {} };

/**
 * A View's end of the conversation with its host: `new App({ name, version }, capabilities,
 * options)`. Options: `autoResize`, true unless given; `toJSONSchema`, which makes a JSON Schema of
 * a Standard Schema that cannot do so itself.
 *
 * Handlers: `ontoolinput ontoolinputpartial ontoolresult ontoolcancelled onhostcontextchanged`,
 * also through `addEventListener`; `onlisttools oncalltool onteardown onerror onclose`.
 */
function App(info, capabilities = {}, options = {}) {
  const { automatic } = hooks;
  if (automatic) return automatic.become(info, capabilities, options);
  const app = this;
  const tools = new Set();
  const handlers = {}; // onlisttools, oncalltool
  const listeners = {};
  const pending = new Map(); // requests of ours that wait for an answer: what to do with it
  const running = new Map(); // requests of the host that wait for ours: how to stop
  const tasks = new Map(); // calls that go on in this page after they were answered
  const serverTasks = new WeakSet(); // handles that the server gave
  const handedOn = new Set(); // ids of those that the host has now
  let nextId = 0;
  let registrations = 0;
  let declared, host, ready, wanted, due, observer, styled;
  hooks.current = app;

  /**
   * Report an error to `onerror`, or to the console; with a kind of problem, to the host as well.
   * Async, so that it never throws.
   */
  const report = async (error, kind, tool) => {
    if (kind) reportProblem(kind, error, { tool });
    globalThis[REPORTED] = true; // onerror writes it to the console more often than not
    try {
      return (app.onerror ?? console.error)(error);
    } finally {
      globalThis[REPORTED] = false;
    }
  };

  /** Run a handler; errors are reported, and do not affect others. */
  const run = async (handler, ...given) => {
    try {
      return await handler?.(...given);
    } catch (error) {
      report(error, "error");
    }
  };

  /** The error that is sent to the host: only texts that are meant for it. */
  const outside = (error, text, ...problem) =>
    error instanceof ProtocolError
      ? error
      : (report(error, ...problem), new ProtocolError(-32603, text));

  /** Run a callback on behalf of a host: the result, or a handle of the server's. */
  const outcome = async (name, callback, output) => {
    try {
      const value = await callback();
      return serverTasks.has(value) ? value : await toResult(value, output);
    } catch (error) {
      if (error instanceof ToolError) return { content: [asBlock(error.message)], isError: true };
      throw outside(error, `Tool ${name} failed`, "tool", name);
    }
  };

  /** The result itself, from the server if it works on it. */
  const whole = async (value, signal) =>
    serverTasks.has(value)
      ? ask("tasks/result", { taskId: value.taskId }, { timeout: DAY, signal })
      : value;

  // --- tools

  const find = (name) => [...tools].find((tool) => tool.name === name);

  /** Check that tools can still be registered. */
  const wantTools = (what) =>
    must(
      !declared || declared.tools,
      `${what} after connect() without the capability tools: do so before, or declare it`,
    );

  /** Whether both sides declared notifications of changed tools. */
  const tellsChanges = () => {
    const { appTools, tools = appTools } = host?.hostCapabilities ?? {};
    return ready && declared.tools?.listChanged && (!tools || tools.listChanged);
  };

  /** The tools have changed: tell the host, once for all that changes in this turn. */
  const listChanged = () => {
    if (due || !tellsChanges()) return;
    due = true;
    queueMicrotask(() => due && notifyListChanged());
  };

  const notifyListChanged = () => {
    due = false;
    if (tellsChanges()) send({ method: "notifications/tools/list_changed", params: {} });
  };

  /**
   * Add a tool; its handle. What a handle says now is what hosts see and what calls are checked
   * against. Setting a field is an update with it. Once the tool is removed, its handle does
   * nothing and tells nobody.
   */
  const add = (config, callback) => {
    let fields = { enabled: true };
    let input, output;

    const make = (source, isOutput, beside = fields) =>
      makeSchema(source, isOutput, beside, options.toJSONSchema);

    /** Change all that is given, or nothing. */
    const apply = (changes) => {
      const next = { ...fields };
      if (has(changes, "inputSchema")) next.jsonSchema = undefined; // it was beside another one
      for (const field of FIELDS) {
        if (has(changes, field)) next[field] = changes[field] ?? undefined;
      }
      const { name, inputSchema, outputSchema, execution } = next;
      must(isString(name) && /^[\w.-]{1,128}$/.test(name), `Not a tool name: ${name}`);
      must(name === fields.name || !find(name), `Tool ${name} is already registered`);
      must(
        /^(forbidden|optional|required)$/.test(execution?.taskSupport ?? "forbidden"),
        "Not a taskSupport",
      );
      const lazy = isFunction(inputSchema) && !inputSchema["~standard"];
      must(!lazy || inputSchema.constructor === Function, "A lazy inputSchema is sync");
      [input, output, fields] = [
        lazy ? undefined : make(inputSchema ?? {}, false, next),
        outputSchema && make(outputSchema, true, next),
        next,
      ];
    };

    /** The input schema as it is now; undefined if a lazy one cannot be made. */
    const schema = () => {
      try {
        const made = input ?? make(fields.inputSchema());
        tool.error = undefined;
        return made;
      } catch (error) {
        if (`${error}` !== `${tool.error}`) report(error, "schema", fields.name);
        tool.error = error;
      }
    };

    const entry = (known) => {
      const { enabled, reason, jsonSchema, toJSONSchema, returnsTask, _meta, ...rest } = fields;
      return (
        enabled && {
          ...rest,
          inputSchema: known?.json,
          outputSchema: output?.json,
          _meta: {
            ..._meta,
            "transom/registration": tool.registration,
            ...(!input && { "transom/lazy": true }),
          },
        }
      );
    };

    const changed = (listed) => {
      if (listed) listChanged();
      hooks.toolChanged(tool);
    };

    const tool = {
      /** Tells this tool from an earlier one of the same name. */
      registration: ++registrations,
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
      /** Run it for a host: the result to answer with, or a handle of the server's. */
      run: (given, extra) =>
        outcome(
          fields.name,
          async () => {
            const { name, enabled, reason } = fields;
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
      /** Run it for the browser; the result. */
      call: (given, signal) =>
        call({ name: fields.name, arguments: given }, makeExtra(signal)),
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

  // --- what the host asks

  const list = async ({ cursor }, extra) => {
    const all = [...tools];
    const rows = all.flatMap((tool) => tool.definition() || []);
    const more = (given) => {
      const { inputSchema = { type: "object" }, ...row } = isString(given)
        ? { name: given }
        : Object(given);
      if (!isString(row.name) || inputSchema?.type !== "object") {
        report(Error(`Not a tool: ${asText(given)}`), "error");
      } else if (!find(row.name)) rows.push({ ...row, inputSchema });
    };
    let next;
    do {
      const given = await handlers.onlisttools?.({ cursor: next }, extra);
      (given?.tools ?? given ?? []).map(more);
      next = given?.nextCursor;
    } while (next && rows.length < 1e4);
    (await hooks.browserTools()).map(more);
    const [page, nextCursor] = paged(rows, cursor);
    const disabled = all.filter((tool) => !tool.enabled).slice(0, 100);
    // One that is left out because its schema throws may be there at the next listing.
    const failing = all.some((tool) => tool.error);
    return {
      tools: page,
      nextCursor,
      // For the host and its user: models do not see this.
      ...(!cursor &&
        (disabled[0] || failing) && {
          _meta: {
            "transom/lazy": failing,
            "transom/disabled": disabled.map(({ name, reason, registration }) => ({
              name,
              reason: reason && `${reason}`.slice(0, 500),
              registration,
            })),
          },
        }),
    };
  };

  const call = async (params, extra, control) => {
    const { name, task } = params;
    params.arguments ??= {};
    must(
      isString(name) && isObject(params.arguments) && isObject(task ?? {}),
      "Invalid params",
      -32602,
    );
    const tool = find(name);
    const support = tool?.execution?.taskSupport;
    must(!task || /^[or]/.test(support), `Tool ${name} cannot run as a task`, -32601);
    must(task || support !== "required", `Tool ${name} must be called as a task`, -32601);
    if (task) return callAsTask(tool, params, extra, control);
    if (tool) return whole(await tool.run(params.arguments, extra), extra.signal);
    const other = (await hooks.browserTool(name)) ?? handlers.oncalltool;
    must(other, `Tool ${name} not found`, -32602);
    return outcome(name, () => other(params, extra));
  };

  const methods = {
    __proto__: null,
    ping: () => ({}),
    "ui/resource-teardown": async (params, extra) =>
      Object(await run(app.onteardown, params, extra)),
    "tools/list": list,
    "tools/call": call,
    "tasks/list"({ cursor }) {
      const [page, nextCursor] = paged([...tasks.values()], cursor);
      return { tasks: page.map(({ task }) => task), nextCursor };
    },
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
        if (styled) applyStyle();
      }
      if (/lt$/.test(name)) params.content ??= [];
      for (const handler of [app["on" + event], ...all]) run(handler, params);
    };
  }

  // --- tasks

  /** Answer a call with a handle: of the server's task, or of one in this page. */
  const callAsTask = async (tool, { arguments: given, task: { ttl } }, extra, control) => {
    must(tasks.size < MAX_TASKS, "Too many tasks", -32000);
    const work = tool.run(given, extra);
    const task = tool.returnsTask && (await work);
    if (!serverTasks.has(task)) return { task: keepTask(work, ttl, control) };
    handedOn.add(task.taskId);
    if (handedOn.size > MAX_TASKS) handedOn.delete([...handedOn][0]);
    return { task };
  };

  /** Store a running task, and its result, for its `ttl`. */
  const keepTask = (work, ttl, control) => {
    const { signal } = control;
    const taskId = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const task = {
      taskId,
      ttl: ttl > 0 ? Math.ceil(Math.min(ttl, DAY)) : DEFAULT_TTL,
      pollInterval: 500,
    };
    const become = (status) => {
      task.status = status;
      task.lastUpdatedAt = new Date().toISOString();
    };
    become("working");
    task.createdAt = task.lastUpdatedAt;
    const result = new Promise((resolve, reject) => {
      onAbort(signal, () => reject(cancelled("task")));
      work.then((made) => whole(made, signal)).then(resolve, reject);
    });
    result.then(
      ({ isError }) => become(isError ? "failed" : "completed"),
      () => become(signal.aborted ? "cancelled" : "failed"),
    );
    const forget = () => {
      clearTimeout(timer);
      tasks.delete(taskId);
      control.abort();
    };
    const timer = setTimeout(forget, task.ttl);
    tasks.set(taskId, { task, result, control, forget });
    return task;
  };

  const TASK_METHODS = {
    get: ({ task }) => task,
    async result({ task: { taskId }, result }) {
      const made = await result;
      const related = { "io.modelcontextprotocol/related-task": { taskId } };
      return { ...made, _meta: { ...made._meta, ...related } };
    },
    async cancel({ task, result, control }) {
      const { taskId, status } = task;
      must(status === "working", `Task ${taskId} has already ended: ${status}`, -32602);
      control.abort();
      await result.catch(() => {});
      return task;
    },
  };
  for (const [name, answer] of entries(TASK_METHODS)) {
    const method = "tasks/" + name;
    methods[method] = ({ taskId }, { signal }) => {
      must(isString(taskId), "Invalid params", -32602);
      if (handedOn.has(taskId)) return ask(method, { taskId }, { timeout: DAY, signal });
      must(tasks.has(taskId), `Task ${taskId.slice(0, 100)} not found`, -32602);
      return answer(tasks.get(taskId));
    };
  }

  // --- messages

  const send = (message) => {
    must(declared, "Not connected");
    parent.postMessage(copy({ jsonrpc: "2.0", ...message }), "*");
  };

  const receive = async ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    try {
      const text = write(data);
      const message = text.length > 2 ** 24 ? {} : read(text);
      const { id, method, params = {}, result, error } = message;
      const silent = id === undefined;
      must(
        isObject(params) &&
          (method ? /notif/.test(method) === silent : isObject(result ?? error)) &&
          (silent || isString(id) || Number.isSafeInteger(id)),
        "Invalid message",
      );
      if (method) return await (silent ? methods[method]?.(params) : serve(method, params, id));
      must(pending.has(id), `Unknown response: ${id}`);
      pending.get(id)(message);
    } catch (error) {
      report(error);
    }
  };

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
        methods[method] && (declared.tools || !/^t/.test(method)),
        "Method not found",
        -32601,
      );
      const extra = makeExtra(signal, id, method, params._meta);
      answer = { result: copy(await methods[method](params, extra, control)) };
    } catch (problem) {
      answer = { error: outside(problem, "Internal error", "error") };
    }
    running.delete(id);
    if (!signal.aborted) send({ id, ...answer });
  };

  /** Ask the host. Each notice of progress starts the timeout again. */
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
      onAbort(signal, () => quit(signal.reason));
    });

  /** Which of Transom's extensions the host announced. */
  const takes = (name) => host?.hostCapabilities.experimental?.["transom/" + name];

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
        // Hosts refuse in two forms; a page always gets the same one.
        if (error.code !== -32000 || !/^ui\/[dmou]/.test(method)) throw error;
        return { isError: true, ...error };
      });
    };
  }
  for (const name of ["onlisttools", "oncalltool"]) {
    defineProperty(app, name, {
      get: () => handlers[name],
      set(handler) {
        if (handler) wantTools(`${name} was set`);
        handlers[name] = handler;
      },
    });
  }
  defineProperty(app, "tools", { get: () => [...tools] });
  assign(app, {
    /**
     * Offer a tool to the host; its handle. The callback gets `(args, extra)`, or `(extra)` if
     * there is no inputSchema; then the arguments are `extra.arguments`.
     */
    registerTool(name, config, callback) {
      wantTools(`Tool ${name} was registered`);
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
    /**
     * Tell the host that the tools have changed, now. Counts for all changes of this turn. A host
     * that announces `tools` without `listChanged` is not notified.
     */
    async sendToolListChanged() {
      must(ready && declared.tools?.listChanged, "Not connected or not declared");
      notifyListChanged();
    },
    /**
     * Call a tool of the server as a task; the server's handle. A tool with `returnsTask` that
     * returns it hands the work on: the host can follow it there, also when this View is gone.
     */
    async startServerTask(params, { ttl, ...options } = {}) {
      const { task } = await app.callServerTool({ ...params, task: { ttl } }, options);
      must(isString(task?.taskId), `${params.name} started no task`);
      serverTasks.add(task);
      return task;
    },
    /** Ask the host to keep this View open; resolves to whether it will. */
    async requestPin(reason) {
      const pinned = ({ isError }) => !isError;
      return !!takes("pin") && ask("transom/request-pin", { reason }).then(pinned, () => false);
    },
    /** Let the page have the host's theme and style variables, from now on. */
    followHostStyle() {
      styled ??= [];
      if (host) applyStyle();
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
    async connect(_, requestOptions) {
      must(!declared, "App is already connected");
      const offers = wanted || handlers.onlisttools || handlers.oncalltool || hooks.native;
      const mine = { ...(offers && { tools: { listChanged: true } }), ...capabilities };
      declared = mine;
      addEventListener("message", receive);
      try {
        const found = await ask(
          "ui/initialize",
          { appInfo: info, appCapabilities: mine, protocolVersion: "2026-01-26" },
          requestOptions,
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
      if (takes("problems")) {
        sendProblem = (params) => send({ method: "transom/notifications/problem", params });
        watchConsole();
      }
      if (styled) applyStyle();
      if (options.autoResize ?? true) watchSize();
    },
    /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
    async close() {
      if (!declared) return;
      for (const [id, control] of running) {
        if (!control.signal.aborted) {
          send({ id, error: cancelled("call") });
        }
        control.abort();
      }
      running.clear();
      for (const { forget } of tasks.values()) forget();
      handedOn.clear();
      for (const settle of pending.values()) settle({ problem: Error("Connection closed") });
      removeEventListener("message", receive);
      observer?.disconnect();
      declared = host = ready = sendProblem = undefined;
      run(app.onclose);
    },
    /** Take the name and the options of an App that the page makes after all. */
    become(...given) {
      app.close();
      [info, capabilities, options] = given;
      hooks.automatic = undefined;
      return app;
    },
  });

  /** Give the page the look of the host as it is now. */
  const applyStyle = () => {
    const { theme, styles = {} } = host.hostContext;
    const { style, dataset } = page.documentElement;
    if (theme) style.colorScheme = dataset.theme = theme;
    for (const name of styled) style.removeProperty(name);
    styled = keys(styles.variables ?? {}).filter((name) => /^--/.test(name));
    for (const name of styled) style.setProperty(name, styles.variables[name] ?? "");
  };

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

App.hooks = hooks;

export { App, ProtocolError, ToolError };
