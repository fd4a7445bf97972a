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
 */

const PROTOCOL_VERSION = "2026-01-26";
const MAX_MESSAGE = 16 * 2 ** 20; // characters of JSON
const MAX_RUNNING = 1024; // requests of the host at a time
const MAX_FAULTS = 999;
const MAX_MATCHED = 65_536; // characters held against a pattern
const TIMEOUT = 60_000;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;
const SERVER_ERROR = -32000;

/** A tool cannot do what it was asked. The text becomes a result that the model can read. */
export class ToolError extends Error {}

/** A JSON-RPC error: throw it to answer with it, catch it when the host answered with it. */
export class ProtocolError extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const isString = (value) => typeof value === "string";
const isFunction = (value) => typeof value === "function";
const isArray = Array.isArray;
const isObject = (value) => typeof value === "object" && value !== null && !isArray(value);
const keys = Object.keys;
const has = Object.hasOwn;
const copy = (value) => JSON.parse(JSON.stringify(value));
const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Stop unless a condition holds. */
function must(condition, text, Kind = Error) {
  if (!condition) throw new Kind(text);
}

/** Do something when this turn of the event loop is over. (Timers are slow in hidden pages.) */
function soon(action) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    action();
  };
  port2.postMessage(0);
}

// --- JSON Schema: what is wrong with a value ----------------------------------------------------
//
// A fault is `{ path, text }`. Those of `type`, `const` and `enum` also have `want`, the types or
// values that would do; `fixed` tells the values from the types.

const KINDS = ["null", "boolean", "integer", "number", "string", "array", "object"];

function kindOf(value) {
  if (Number.isInteger(value)) return "integer";
  if (isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}

function quoted(value) {
  let text = JSON.stringify(value);
  if (isString(value) && (value.includes('"') || !value.includes("'"))) {
    text = `'${text.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  }
  return cut(text, 60);
}

function listed(items, write) {
  const rest = items.length - 10;
  return items.slice(0, 10).map(write).join(", ") + (rest > 0 ? `, ... (${rest} more)` : "");
}

/** A path as `items[2].id`. */
function place(path) {
  let text = "";
  for (const step of path) {
    const name = cut(String(step), 60);
    if (typeof step === "number") text += `[${step}]`;
    else if (/^[\p{L}_][\p{L}\p{N}_$-]*$/u.test(name)) text += text ? `.${name}` : name;
    else text += `[${quoted(name)}]`;
  }
  return cut(text, 120);
}

/** A value as text that is the same for equal values, whatever the order of their keys. */
const canonical = (value) =>
  JSON.stringify(value, (_, part) => (isObject(part) ? Object.entries(part).sort() : part));

function regex(source) {
  try {
    return new RegExp(source, "u");
  } catch {
    return new RegExp(source);
  }
}

/** Follow `#/$defs/name`. */
function target(root, reference) {
  let node = /^#(\/|$)/.test(reference) && root;
  for (const step of decodeURIComponent(reference).split("/").slice(1)) {
    node = Object(node)[step.replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  must(isObject(node), `Not a schema of this document: ${cut(reference, 80)}`);
  return node;
}

/**
 * See that values can be held to a schema: JSON Schema 2020-12 without `unevaluated*`, anchors and
 * references to elsewhere. `format` is a note for the reader and refuses nothing.
 */
function verify(root, node = root) {
  if (typeof node === "boolean") return;
  must(isObject(node), "A schema is an object, true or false");
  for (const [word, rule] of Object.entries(node)) {
    const is = (words) => new RegExp(`^(${words})$`).test(word);
    let good = !is("unevaluated.*|\\$(dynamic.*|anchor)");
    if (is("not|if|then|else|items|contains|propertyNames|additionalProperties")) verify(root, rule);
    else if (is("(all|any|one)Of|prefixItems|enum|required")) {
      good = isArray(rule);
      if (good && !is("enum|required")) for (const part of rule) verify(root, part);
    } else if (is("p.*roperties|dependentSchemas|\\$defs|definitions")) {
      good = isObject(rule);
      for (const name of keys(rule)) verify(root, rule[name]);
      if (is("pat.*")) keys(rule).map(regex);
    } else if (is("type")) good = [rule].flat().every((name) => KINDS.includes(name));
    else if (is("m(in|ax)[A-Zi].*|exclusiveM.*|multipleOf")) good = typeof rule === "number";
    else if (is("pattern")) regex(rule);
    else if (is("\\$ref")) target(root, rule);
    must(good, `Not a JSON Schema that can be used: ${word}`);
  }
}

const wrongType = (path, want, value) => ({
  path,
  want,
  text: `expected ${[...new Set(want)].join(" or ")}, got ${kindOf(value)}`,
});
const wrongValue = (path, want, text = `must be one of ${listed(want, quoted)}`) => ({
  path,
  want,
  text,
  fixed: true,
});

/** What is wrong with a value; nothing if it fits. */
function check(root, node, value, path = [], faults = []) {
  const kind = kindOf(value);
  const say = (text, ...steps) => faults.push({ path: [...path, ...steps], text });
  const at = (schema, part, ...steps) => check(root, schema, part, [...path, ...steps], faults);
  const fits = (schema, part = value) => !check(root, schema, part).length;
  const same = (option) => canonical(option) === canonical(value);
  const sized = (size, least, most, unit) => {
    if (size < least) say(`must have at least ${least} ${unit}`);
    if (size > most) say(`must have at most ${most} ${unit}`);
  };
  const needs = (names) => {
    for (const name of names) if (!has(value, name)) say("is required", name);
  };

  if (node === true || faults.length > MAX_FAULTS) return faults;
  if (node === false) {
    say("is not allowed");
    return faults;
  }
  const types = [node.type ?? KINDS].flat();
  if (!types.includes(kind) && !(kind === "integer" && types.includes("number"))) {
    faults.push(wrongType(path, types, value));
  }
  if (has(node, "$ref")) at(target(root, node.$ref), value);
  if (node.enum && !node.enum.some(same)) faults.push(wrongValue(path, node.enum));
  if (has(node, "const") && !same(node.const)) {
    faults.push(wrongValue(path, [node.const], `must be ${quoted(node.const)}`));
  }

  if (typeof value === "number") {
    if (value < node.minimum) say(`must be >= ${node.minimum}`);
    if (value > node.maximum) say(`must be <= ${node.maximum}`);
    if (value <= node.exclusiveMinimum) say(`must be > ${node.exclusiveMinimum}`);
    if (value >= node.exclusiveMaximum) say(`must be < ${node.exclusiveMaximum}`);
    const times = value / node.multipleOf;
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.abs(times)) {
      say(`must be a multiple of ${node.multipleOf}`);
    }
  } else if (kind === "string") {
    sized([...value].length, node.minLength, node.maxLength, "characters");
    if (has(node, "pattern")) {
      if (value.length > MAX_MATCHED) say("is too long for its pattern");
      else if (!regex(node.pattern).test(value)) {
        say(`must match the pattern ${quoted(node.pattern)}`);
      }
    }
  } else if (kind === "array") {
    sized(value.length, node.minItems, node.maxItems, "items");
    value.forEach((item, i) => at(node.prefixItems?.[i] ?? node.items ?? true, item, i));
    if (node.uniqueItems && new Set(value.map(canonical)).size < value.length) {
      say("must not hold the same item twice");
    }
    if (has(node, "contains")) {
      const { length } = value.filter((item) => fits(node.contains, item));
      if (length < (node.minContains ?? 1) || length > node.maxContains) {
        say("must hold an item that fits");
      }
    }
  } else if (kind === "object") {
    const { properties = {}, patternProperties = {}, additionalProperties = true } = node;
    const names = keys(value);
    const known = keys(properties);
    sized(names.length, node.minProperties, node.maxProperties, "properties");
    needs(node.required ?? []);
    for (const name of names) {
      const patterns = keys(patternProperties).filter((source) => regex(source).test(name));
      for (const source of patterns) at(patternProperties[source], value[name], name);
      if (has(properties, name)) at(properties[name], value[name], name);
      else if (patterns.length) continue;
      else if (additionalProperties) at(additionalProperties, value[name], name);
      else {
        const hint = known.length ? `; known: ${listed(known, (key) => cut(key, 60))}` : "";
        say(`is not expected${hint}`, name);
      }
    }
    if (!names.every((name) => fits(node.propertyNames ?? true, name))) {
      say("has a property whose name is not allowed");
    }
    for (const [name, list] of Object.entries(node.dependentRequired ?? {})) {
      if (has(value, name)) needs(list);
    }
    for (const [name, schema] of Object.entries(node.dependentSchemas ?? {})) {
      if (has(value, name)) at(schema, value);
    }
  }

  for (const part of node.allOf ?? []) at(part, value);
  if (has(node, "not") && fits(node.not)) say("is not allowed");
  if (has(node, "if")) at((fits(node.if) ? node.then : node.else) ?? true, value);
  for (const word of ["anyOf", "oneOf"]) {
    const branches = node[word]?.map((part) => check(root, part, value, path));
    const fitting = branches?.filter((branch) => !branch.length).length;
    if (fitting === 0) faults.push(...meant(branches, value, path));
    else if (fitting > 1 && word === "oneOf") say("fits more than one alternative");
  }
  return faults;
}

/** Of alternatives that all do not fit, speak of the one that was probably meant. */
function meant(branches, value, path) {
  const wrong = (fault) => fault.want && !fault.fixed && fault.path.length === path.length;
  const tag = (branch) => branch.find((fault) => fault.fixed);
  const [best, ...others] = branches
    .filter((branch) => !branch.some(wrong))
    .sort((a, b) => !!tag(a) - !!tag(b) || a.length - b.length);
  const types = branches.flat().filter(wrong).flatMap((fault) => fault.want);
  if (best) {
    const mark = tag(best);
    if (!mark) return best;
    // None has the right tag, so say which tags there are.
    const tags = [best, ...others].map(tag).filter((one) => `${one.path}` === `${mark.path}`);
    return [wrongValue(mark.path, tags.flatMap((one) => one.want))];
  }
  if (types.length) return [wrongType(path, types, value)];
  return [{ path, text: "fits none of the alternatives" }];
}

/** A value does not fit. The message has a line for each problem. */
class Misfit extends Error {
  constructor(faults) {
    const fixed = faults.filter((fault) => fault.fixed).map((fault) => place(fault.path));
    const lines = new Set();
    for (const { path, text, want, fixed: tells } of faults) {
      const where = place(path);
      // Who is told which values are allowed need not be told their type.
      if (!want || tells || !fixed.includes(where)) {
        lines.add(`\n- ${where}${where && ": "}${cut(text, 200)}`);
      }
    }
    const rest = lines.size - 10;
    super([...lines].slice(0, 10).join("") + (rest > 0 ? `\n- and ${rest} more` : ""));
  }
}

// --- Schemas --------------------------------------------------------------------------------------

/** Whether a schema accepts objects and nothing else, as far as its outside tells. */
function describesObject(schema) {
  const { type, allOf = [], anyOf = [], oneOf = [] } = schema;
  if (type !== undefined) return `${type}` === "object";
  if (/"(\w*[pP]roperties|propertyNames|dependent\w+|required)"/.test(JSON.stringify(keys(schema)))) {
    return true;
  }
  const choices = [...anyOf, ...oneOf];
  return allOf.some(describesObject) || (choices.length > 0 && choices.every(describesObject));
}

/**
 * Make `{ json, parse }` of a JSON Schema or a Standard Schema (zod, Valibot, ArkType, ...).
 * Values that are no object travel as `{ result: value }`, and then `wrapped` is set.
 */
function makeSchema(source, output) {
  const standard = Object(source)["~standard"];
  let json = source;
  if (standard) {
    json = standard.jsonSchema?.[output ? "output" : "input"]({ target: "draft-2020-12" }) ?? {};
  }
  must(isObject(json), "A schema is a JSON Schema object or a Standard Schema", TypeError);
  json = copy(json);
  delete json.$schema;
  if (!standard) verify(json);
  const inner = json;
  const wrapped = keys(json).length > 0 && !describesObject(json);
  if (wrapped) {
    must(output, "An input schema must describe an object, for tools take named arguments");
    const { $defs, ...rest } = json;
    json = { type: "object", properties: { result: rest }, required: ["result"], ...($defs && { $defs }) };
  } else json = { type: "object", ...(!output && { properties: {} }), ...json };
  const defaults = {};
  for (const [name, entry] of Object.entries(json.properties ?? {})) {
    if (has(Object(entry), "default")) defaults[name] = entry.default;
  }
  return {
    json,
    wrapped,
    async parse(value) {
      if (standard) {
        const { issues, value: parsed } = await standard.validate(wrapped ? value.result : value);
        if (!issues) return wrapped ? { result: parsed } : parsed;
        throw new Misfit(issues.map(({ path = [], message }) => ({
          path: path.map((step) => Object(step).key ?? step),
          text: message,
        })));
      }
      let faults;
      try {
        faults = check(wrapped ? { ...json, ...inner.$defs && {$defs: inner.$defs}} : json, json, value);
      } catch {
        faults = [{ path: [], text: "is nested too deeply" }];
      }
      if (faults.length) throw new Misfit(faults);
      return { ...copy(defaults), ...value };
    },
  };
}

// --- Results --------------------------------------------------------------------------------------

const text = (words) => ({ type: "text", text: words });
const failure = (words) => ({ content: [text(words)], isError: true });

const BLOCKS = {
  __proto__: null,
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource_link: ["uri", "name"],
  resource: ["resource"],
};
const isBlock = (value) => isObject(value) && !!BLOCKS[value.type]?.every((key) => has(value, key));

/** Tell a result from data that happens to have a key named `content`. */
function isResult(value) {
  if (!isObject(value)) return false;
  const { content } = value;
  if (isArray(content) && content.length) return content.every(isBlock);
  const names = keys(value).filter((name) => name !== "_meta");
  return names.length > 0 && names.every((name) => /^(structuredContent|isError|content)$/.test(name)) && (isArray(content) || !has(value, "content"));
}

/** Make a tool result of whatever a callback returned. What is sent is a copy. */
async function toResult(value, output) {
  const given = copy(value ?? null);
  const say = (shown) => [text(isString(shown) ? shown : JSON.stringify(shown))];
  if (isResult(given) && !has(output?.json.properties ?? {}, "content")) {
    let { content = [], structuredContent: data, isError = false } = given;
    must(typeof isError === "boolean", "isError is true or false");
    if (output && !isError) {
      if (output.wrapped && !has(Object(data), "result")) data = { result: data };
      data = await output.parse(data);
    }
    if (data === undefined) return { ...given, content };
    must(isObject(data), "structuredContent must be an object");
    return { ...given, content: content.length ? content : say(data), structuredContent: data };
  }
  if (output) {
    const data = await output.parse(output.wrapped ? { result: given } : given);
    return { content: say(output.wrapped ? data.result : data), structuredContent: data };
  }
  if (given === null || isString(given)) return { content: [text(given ?? "Done.")] };
  const parts = isArray(given) ? given : [given];
  if (parts.some(isBlock) && parts.every((part) => isBlock(part) || isString(part))) {
    return { content: parts.map((part) => (isString(part) ? text(part) : part)) };
  }
  return { content: say(given), structuredContent: isObject(given) ? given : { result: given } };
}

/** Run a callback on behalf of a host; the result, or the error to answer with. */
async function outcome(name, run, output, report) {
  let returned;
  try {
    returned = await run();
  } catch (error) {
    if (error instanceof ToolError) return failure(error.message || `Tool ${name} failed`);
    if (error instanceof ProtocolError) throw error;
    report(error);
    throw new ProtocolError(INTERNAL_ERROR, `Tool ${name} failed`);
  }
  try {
    return await toResult(returned, output);
  } catch (error) {
    report(error);
    throw new ProtocolError(INTERNAL_ERROR, `Tool ${name} returned something it must not`);
  }
}

// --- Tools ----------------------------------------------------------------------------------------

const FIELDS = ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"];

/** The tools of one App, or of the page: what `document.modelContext` registered. */
class Shelf {
  tools = new Set();
  report = console.error;
  told = () => {};

  /** What a host is shown: our own, and the page's if we speak for it. */
  visible() {
    return [...new Set([...this.tools, ...(this === speaker ? page.tools : [])])];
  }

  find(name) {
    return this.visible().find((tool) => tool.name === name);
  }

  /** See that a tool could be registered under this name. */
  free(name) {
    must(/^[\w.-]{1,128}$/.test(isString(name) && name), `${quoted(`${name}`)} is not a tool name: use 1 to 128 of A-Z a-z 0-9 _ . -`);
    must(!this.find(name), `Tool ${name} is already registered`);
  }

  add(config, run) {
    this.free(config.name);
    const tool = makeTool(this, config, run);
    this.tools.add(tool);
    this.changed(tool, tool.enabled);
    return tool;
  }

  /** Note a change; `shown` when a listing shows it. */
  changed(tool, shown) {
    mirror(tool);
    if (shown) this.told();
  }
}

const page = new Shelf();
let speaker = page; // the shelf of the App that speaks for the page
let mirror = () => {}; // tells `document.modelContext` of a change

/**
 * A tool, live: what it says now is what hosts see and what calls are checked against. Setting a
 * field is an `update` with it. Once removed, it does nothing and tells nobody.
 */
function makeTool(shelf, config, run) {
  let fields = {};
  let enabled = config.enabled ?? true;
  let head, input, output, reason, error, last;
  const stale = () => !shelf.tools.has(tool);

  function apply(changes) {
    const next = { ...fields };
    for (const field of FIELDS) if (has(changes, field)) next[field] = changes[field] ?? undefined;
    const { inputSchema: source, outputSchema, ...rest } = next;
    for (const [field, value] of Object.entries(rest)) {
      must(
        value === undefined || (/^[a_]/.test(field) ? isObject : isString)(value),
        `Tool ${next.name}: ${field} is of the wrong type`,
        TypeError,
      );
    }
    for (const [hint, value] of Object.entries(rest.annotations ?? {})) {
      must(!/Hint$/.test(hint) || typeof value === "boolean", `${hint} is true or false`, TypeError);
    }
    const lazy = isFunction(source) && !source["~standard"];
    must(
      !lazy || source.constructor.name !== "AsyncFunction",
      `Tool ${next.name}: a lazy inputSchema must be a sync function. Keep what is fetched in ` +
        "your state, and update the tool when it changes",
      TypeError,
    );
    const takes = lazy ? undefined : makeSchema(source ?? {});
    const gives = outputSchema && makeSchema(outputSchema, true);
    head = copy({ ...rest, inputSchema: takes?.json, outputSchema: gives?.json });
    [fields, input, output, error] = [next, takes, gives, undefined];
  }

  /** The input schema as it is now; undefined if a lazy one cannot be made. */
  function schema() {
    if (input) return input;
    try {
      const made = fields.inputSchema();
      made?.then?.(null, () => {});
      must(!made?.then, "a lazy inputSchema must not be async");
      const written = !made?.["~standard"] && JSON.stringify(made);
      if (!written || last?.written !== written) {
        last = { ...makeSchema(made), written };
        if (!stale()) mirror(tool);
      }
      error = undefined;
      return last;
    } catch (problem) {
      if (`${error}` !== `${problem}`) shelf.report(problem);
      error = problem;
    }
  }

  const tool = {
    get enabled() {
      return enabled;
    },
    set enabled(value) {
      if (value) tool.enable();
      else tool.disable();
    },
    /** Why it is disabled, if that was said. */
    get reason() {
      return reason;
    },
    /** Why its lazy schema could not be made the last time. */
    get error() {
      return error;
    },
    enable() {
      if (enabled || stale()) return;
      [enabled, reason] = [true, undefined];
      shelf.changed(tool, true);
    },
    /** Hide it from hosts and refuse calls, saying why. It stays registered. */
    disable(why) {
      if (stale()) return;
      const was = enabled;
      [enabled, reason] = [false, why];
      shelf.changed(tool, was);
    },
    /** Change what is given; undefined takes a field away. An error leaves the tool as it was. */
    update(changes) {
      if (stale()) return;
      if (has(changes, "name") && changes.name !== fields.name) shelf.free(changes.name);
      const before = input && JSON.stringify(head);
      if (FIELDS.some((field) => has(changes, field))) {
        apply(changes);
        if (!before || !input || JSON.stringify(head) !== before) shelf.changed(tool, enabled);
      }
      if (has(changes, "enabled")) tool.enabled = changes.enabled;
    },
    remove() {
      if (shelf.tools.delete(tool)) shelf.changed(tool, enabled);
    },
    /** Its entry in a listing; undefined if it has none now. */
    definition() {
      const inputSchema = enabled && schema()?.json;
      return inputSchema && { ...head, inputSchema };
    },
    /** Run it as a host does; what the callback returned. */
    async handler(given, extra) {
      const { name } = fields;
      must(enabled, `Tool ${name} is disabled${reason ? `: ${reason}` : ""}`, ToolError);
      const known = schema();
      must(known, `Tool ${name} is unavailable right now`, ToolError);
      try {
        extra.arguments = await known.parse(given);
      } catch (misfit) {
        if (!(misfit instanceof Misfit)) shelf.report(misfit);
        const why = misfit instanceof Misfit ? misfit.message : "\n- could not be checked";
        throw new ToolError(`Invalid arguments for tool ${name}:${why}`);
      }
      return run(extra.arguments, extra);
    },
    /** Run it as a host does; the result to answer with. */
    call: (given, extra) =>
      outcome(fields.name, () => tool.handler(given, extra), output, shelf.report),
  };
  for (const field of FIELDS) {
    Object.defineProperty(tool, field, {
      enumerable: true,
      get: () => fields[field],
      set: (value) => tool.update({ [field]: value }),
    });
  }
  apply(config);
  return tool;
}

/** Change a tool by name, as WebMCP does: `disabled`, `description` and `inputSchema`. */
function updateTool(shelf, name, changes) {
  const tool = shelf.find(name);
  must(tool, `Tool ${name} is not registered`);
  const { disabled, ...rest } = changes;
  for (const key of keys(rest)) {
    must(
      /^(description|inputSchema)$/.test(key),
      `updateTool cannot change ${key} of ${name}: ` +
        (FIELDS.includes(key) ? "use handle.update()" : "remove the tool and register it again"),
      TypeError,
    );
  }
  must(disabled === undefined || typeof disabled === "boolean", "disabled is true or false", TypeError);
  tool.update(rest);
  if (disabled === false) tool.enable();
  else if (disabled && tool.enabled) tool.disable();
}

/** What a callback may use while it runs. */
function makeExtra(signal, { id, method, _meta, notify, send } = {}) {
  const progressToken = _meta?.progressToken;
  const sendNotification = async (notice) => signal.aborted || notify?.(notice);
  return {
    signal,
    requestId: id,
    _meta,
    sendNotification,
    sendRequest: send,
    mcpReq: { id, method, _meta, signal, notify: sendNotification, send },
    /** Tell the host how far the work is, if it asked to know. */
    sendProgress: async (progress, total, message) =>
      progressToken !== undefined &&
      sendNotification({
        method: "notifications/progress",
        params: { progressToken, progress, total, message },
      }),
  };
}

// --- App ------------------------------------------------------------------------------------------

/** JSON-RPC over `postMessage`. Messages of any other window are not heard. */
export class PostMessageTransport {
  #target;
  #listen;

  constructor(target = globalThis.parent, source = target) {
    this.#target = target;
    this.#listen = (event) => event.source === source && this.onmessage?.(event.data);
  }

  async start() {
    addEventListener("message", this.#listen);
  }

  async send(message) {
    this.#target.postMessage(message, "*");
  }

  async close() {
    removeEventListener("message", this.#listen);
    this.onclose?.();
  }
}

const isArguments = ({ arguments: given = {} }) => isObject(given);
const EVENTS = {
  "ui/notifications/tool-input": ["toolinput", isArguments],
  "ui/notifications/tool-input-partial": ["toolinputpartial", isArguments],
  "ui/notifications/tool-result": ["toolresult", ({ content = [] }) => isArray(content)],
  "ui/notifications/tool-cancelled": ["toolcancelled", ({ reason = "" }) => isString(reason)],
  "ui/notifications/host-context-changed": ["hostcontextchanged", isObject],
};

/**
 * A View's end of the conversation with its host.
 *
 * Options: `autoResize` (true), `strict` (throw where the default is to warn), `pageSize` (100).
 * Handlers: `ontoolinput ontoolinputpartial ontoolresult ontoolcancelled onhostcontextchanged`,
 * also through `addEventListener`; `onlisttools oncalltool onteardown onerror onclose`.
 */
export class App {
  onerror;
  onclose;
  onteardown;
  #info;
  #given;
  #options;
  #shelf = new Shelf();
  #slots = {};
  #onlisttools;
  #oncalltool;
  #wanted = false;
  #declared;
  #transport;
  #ready = false;
  #host;
  #context;
  #nextId = 0;
  #pending = new Map();
  #running = new Map();
  #due = false;
  #stopResize;

  static {
    for (const [event] of Object.values(EVENTS)) {
      Object.defineProperty(App.prototype, `on${event}`, {
        get() {
          return this.#slots[event].handler;
        },
        set(handler) {
          if (handler) this.#early(event);
          this.#slots[event].handler = handler;
        },
      });
    }
  }

  constructor(info, capabilities = {}, options = {}) {
    this.#info = info;
    this.#given = capabilities;
    this.#options = options;
    for (const [event] of Object.values(EVENTS)) this.#slots[event] = { listeners: [] };
    this.#shelf.report = (error) => this.#report(error);
    this.#shelf.told = () => this.#toldSoon();
    if (speaker === page) speaker = this.#shelf;
  }

  // --- tools

  /** Every registered tool, disabled ones too. */
  get tools() {
    return this.#shelf.visible();
  }

  /**
   * Offer a tool to the host. `callback(args, extra)`, or `callback(extra)` if there is no
   * `inputSchema`; then the arguments are `extra.arguments`.
   */
  registerTool(name, config, callback) {
    must(isFunction(callback), "registerTool(name, config, callback): the callback is missing", TypeError);
    this.#shelf.free(name);
    this.#want(`tool ${name} was registered`, false);
    const run = config.inputSchema ? callback : (_, extra) => callback(extra);
    const tool = this.#shelf.add({ ...config, name }, run);
    this.#wanted = true;
    return tool;
  }

  updateTool(name, changes) {
    updateTool(this.#shelf, name, changes);
  }

  get onlisttools() {
    return this.#onlisttools;
  }

  set onlisttools(handler) {
    if (handler) this.#want("onlisttools was set");
    this.#onlisttools = handler;
  }

  get oncalltool() {
    return this.#oncalltool;
  }

  set oncalltool(handler) {
    if (handler) this.#want("oncalltool was set");
    this.#oncalltool = handler;
  }

  #want(why, commit = true) {
    must(
      !this.#transport || this.#declared.tools,
      `The View is connected and did not declare the tools capability, but ${why}. ` +
        "Register a tool before connect(), or pass { tools: {} } to App",
    );
    this.#wanted ||= commit;
  }

  #toldSoon() {
    if (!this.#ready || !this.#declared.tools?.listChanged || this.#due) return;
    this.#due = true;
    soon(() => this.#due && this.#tell());
  }

  #tell() {
    this.#due = false;
    return this.notification({ method: "notifications/tools/list_changed", params: {} });
  }

  /** Tell the host that the tools have changed, now. Counts for the changes made in this turn. */
  async sendToolListChanged() {
    must(this.#transport, "Not connected");
    must(this.#declared.tools?.listChanged, "The View did not declare tools: { listChanged: true }");
    this.#guard("sendToolListChanged");
    return this.#tell();
  }

  // --- events

  addEventListener(event, handler) {
    this.#early(event);
    this.#slots[event].listeners.push(handler);
  }

  removeEventListener(event, handler) {
    const { listeners } = this.#slot(event);
    const at = listeners.indexOf(handler);
    if (at >= 0) listeners.splice(at, 1);
  }

  #slot(event) {
    must(has(this.#slots, event), `Unknown event: ${event}`);
    return this.#slots[event];
  }

  /** The first handler of an event that comes once, set after the handshake, has missed it. */
  #early(event) {
    const slot = this.#slot(event);
    if (this.#ready && !slot.known && event !== "hostcontextchanged") {
      this.#complain(`on${event} was set after the handshake and may have missed its event`);
    }
    slot.known = true;
  }

  #complain(text) {
    must(!this.#options.strict, text);
    console.warn(text);
  }

  #report(error) {
    try {
      if (this.onerror) this.onerror(error);
      else console.error(error);
    } catch (worse) {
      console.error(worse);
    }
  }

  /** Run a handler; what goes wrong is reported, and nobody else's problem. */
  async #try(action) {
    try {
      return await action();
    } catch (error) {
      this.#report(error);
    }
  }

  // --- life

  getHostContext() {
    return this.#host && this.#context;
  }

  getHostCapabilities() {
    return this.#host?.hostCapabilities;
  }

  getHostVersion() {
    return this.#host?.hostInfo;
  }

  /** Shake hands with the host. Tools and handlers come first. */
  async connect(transport = new PostMessageTransport(), options) {
    must(!this.#transport, "App is already connected. Call close() before connecting again.");
    const declare = (this.#wanted || page.tools.size) && !this.#given.tools;
    this.#declared = { ...this.#given, ...(declare && { tools: { listChanged: true } }) };
    speaker = this.#shelf;
    this.#transport = transport;
    transport.onmessage = (message) => this.#receive(message);
    transport.onclose = () => this.#ended();
    try {
      await transport.start();
      const host = await this.#ask("ui/initialize", {
        appInfo: this.#info,
        appCapabilities: this.#declared,
        protocolVersion: PROTOCOL_VERSION,
      }, options);
      const { protocolVersion, hostInfo, hostCapabilities, hostContext = {} } = host;
      must(
        isString(protocolVersion) && [hostInfo, hostCapabilities, hostContext].every(isObject),
        "Invalid result for ui/initialize",
      );
      this.#host = host;
      this.#context = hostContext;
      this.#send({ method: "ui/notifications/initialized" });
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#ready = true;
    if (this.#options.autoResize ?? true) this.#stopResize = this.setupSizeChangedNotifications();
  }

  /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
  async close() {
    const transport = this.#transport;
    if (!transport) return;
    for (const [id, { signal }] of this.#running) {
      if (!signal.aborted) {
        this.#send({ id, error: { code: SERVER_ERROR, message: "The call was cancelled" } });
      }
    }
    this.#ended();
    await transport.close();
  }

  #ended() {
    if (!this.#transport) return;
    this.#transport = this.#host = undefined;
    this.#ready = this.#due = false;
    this.#stopResize?.();
    for (const running of this.#running.values()) running.abort();
    for (const { reject } of this.#pending.values()) reject(new Error("Connection closed"));
    this.#running.clear();
    this.#pending.clear();
    this.#try(() => this.onclose?.());
  }

  /** Report the size of the content now and whenever it changes, until the function returned is called. */
  setupSizeChangedNotifications() {
    let scheduled, last;
    const report = () => {
      scheduled ??= requestAnimationFrame(() => {
        scheduled = undefined;
        const { style } = document.documentElement;
        const { height: before } = style;
        style.height = "max-content";
        const height = Math.ceil(document.documentElement.getBoundingClientRect().height);
        style.height = before;
        const width = Math.ceil(innerWidth);
        if (this.#transport && last !== (last = `${width} ${height}`)) this.sendSizeChanged({ width, height });
      });
    };
    report();
    const observer = new ResizeObserver(report);
    observer.observe(document.documentElement);
    observer.observe(document.body);
    return () => {
      observer.disconnect();
      cancelAnimationFrame(scheduled);
    };
  }

  // --- messages

  #send(message) {
    must(this.#transport, "Not connected");
    this.#transport.send(copy({ jsonrpc: "2.0", ...message }));
  }

  #receive(data) {
    if (data?.jsonrpc !== "2.0") return;
    let message;
    try {
      const written = JSON.stringify(data);
      must(written.length <= MAX_MESSAGE, "A message is too long");
      message = JSON.parse(written);
      const { id = 0, method, params = {}, result, error, jsonrpc, ...rest } = message;
      must(
        !keys(rest).length &&
          (isString(id) ? id.length <= 256 : Number.isSafeInteger(id)) &&
          isObject(params) &&
          (isString(method) ? !result && !error : has(message, "id") && isObject(result) !== isObject(error)),
        "Invalid JSON-RPC message received",
      );
    } catch (problem) {
      return this.#report(problem);
    }
    const { id, method, params = {} } = message;
    if (!method) this.#answered(id, message);
    else if (has(message, "id")) this.#asked(id, method, params);
    else this.#notified(method, params);
  }

  #answered(id, { result, error }) {
    const waiting = this.#pending.get(id);
    if (!waiting) return this.#report(new Error(`Received a response for an unknown request: ${id}`));
    if (error) waiting.reject(new ProtocolError(error.code, error.message, error.data));
    else waiting.resolve(result);
  }

  async #asked(id, method, params) {
    if (this.#running.has(id)) return this.#report(new Error(`Request id ${id} is in use`));
    if (this.#running.size >= MAX_RUNNING) {
      return this.#send({ id, error: { code: SERVER_ERROR, message: "Too many requests in flight" } });
    }
    const running = new AbortController();
    this.#running.set(id, running);
    const extra = makeExtra(running.signal, {
      id,
      method,
      _meta: params._meta,
      notify: (notice) => this.notification(notice),
      send: (request, options) => this.request(request, options),
    });
    let answer;
    try {
      answer = { result: await this.#serve(method, params, extra) };
      copy(answer);
    } catch (error) {
      const { code, message, data } = error instanceof ProtocolError ? error : { code: INTERNAL_ERROR, message: "Internal error" };
      if (!(error instanceof ProtocolError)) this.#report(error);
      answer = { error: { code, message, data } };
    }
    if (this.#running.get(id) !== running) return;
    this.#running.delete(id);
    if (!running.signal.aborted) this.#send({ id, ...answer });
  }

  async #serve(method, params, extra) {
    if (method === "ping") return {};
    if (method === "ui/resource-teardown") {
      const answer = await this.#try(() => this.onteardown?.(params, extra));
      return isObject(answer) ? answer : {};
    }
    if (this.#declared.tools) {
      if (method === "tools/list") return this.#list(params.cursor, extra);
      if (method === "tools/call") return this.#call(params, extra);
    }
    throw new ProtocolError(METHOD_NOT_FOUND, "Method not found");
  }

  #notified(method, params) {
    if (method === "notifications/cancelled") {
      this.#running.get(params.requestId)?.abort(params.reason);
    } else if (method === "notifications/progress") {
      this.#pending.get(params.progressToken)?.progress(params);
    } else if (has(EVENTS, method)) {
      const [event, good] = EVENTS[method];
      if (!good(params)) return this.#report(new Error(`Invalid params for ${method}`));
      if (event === "hostcontextchanged") {
        const merged = Object.entries({ ...this.#context, ...params });
        this.#context = Object.fromEntries(merged.filter(([, value]) => value !== null));
      }
      const given = event === "toolresult" ? { content: [], ...params } : params;
      const { handler, listeners } = this.#slots[event];
      for (const each of [handler, ...listeners]) this.#try(() => each?.(given));
    }
  }

  // --- what the host asks about tools

  /** A page: registered tools, then what `onlisttools` adds. A cursor says where the next begins. */
  async #list(cursor, extra) {
    const size = this.#options.pageSize ?? 100;
    let start = { index: 0 };
    if (cursor !== undefined) {
      try {
        start = JSON.parse(decodeURIComponent(cursor));
        must(Number.isInteger(start.index) && start.index >= 0 && (start.after || start.more));
      } catch {
        throw new ProtocolError(INVALID_PARAMS, "Invalid cursor");
      }
    }
    const answer = (tools, next) => ({ tools, ...(next && { nextCursor: encodeURIComponent(JSON.stringify(next)) }) });
    const found = [];
    if (!start.more) {
      const tools = this.tools;
      const after = tools.findIndex((tool) => tool.name === start.after) + 1;
      for (let index = after || start.index; index < tools.length; index++) {
        const entry = tools[index].definition();
        if (!entry) continue;
        if (found.length === size) return answer(found, { after: tools[index - 1].name, index });
        found.push(entry);
      }
      if (!this.#onlisttools) return answer(found);
      if (found.length === size) return answer(found, { more: true, index: 0 });
      start = { index: 0 };
    }
    const added = (await this.#onlisttools?.(start.cursor ? { cursor: start.cursor } : {}, extra)) ?? [];
    const kept = (isArray(added) ? added : added.tools ?? []).filter((tool) => {
      const good = isString(tool?.name) && (tool.inputSchema ?? { type: "object" }).type === "object";
      if (!good) this.#report(new Error("onlisttools returned a tool without a name or an object inputSchema"));
      return good && !this.#shelf.find(tool.name);
    });
    const end = start.index + size - found.length;
    found.push(...copy(kept.slice(start.index, end)).map((tool) => ({ inputSchema: { type: "object", properties: {} }, ...tool })));
    if (end < kept.length) return answer(found, { more: true, index: end, cursor: start.cursor });
    return answer(found, added.nextCursor && { more: true, index: 0, cursor: added.nextCursor });
  }

  async #call(params, extra) {
    const { name, task } = params;
    const given = params.arguments ?? {};
    const refuse = (code, text) => { throw new ProtocolError(code, text); };
    if (!isString(name) || !isObject(given)) refuse(INVALID_PARAMS, "Invalid params for tools/call");
    const shown = cut(name, 128);
    if (task) refuse(METHOD_NOT_FOUND, `Tool ${shown} cannot run as a task`);
    const tool = this.#shelf.find(name);
    const report = (error) => this.#report(error);
    if (tool) return tool.call(given, extra);
    if (!this.#oncalltool) refuse(INVALID_PARAMS, `Tool ${shown} not found`);
    return outcome(shown, () => this.#oncalltool({ ...params, arguments: given }, extra), undefined, report);
  }

  // --- what the View asks

  #ask(method, params, { timeout = TIMEOUT, signal, onprogress } = {}) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const id = this.#nextId++;
      const meta = onprogress && { _meta: { ...params?._meta, progressToken: id } };
      let timer;
      const end = (settle) => (value) => {
        clearTimeout(timer);
        this.#pending.delete(id);
        settle(value);
      };
      const give = (error) => {
        if (!this.#pending.has(id)) return;
        this.#send({ method: "notifications/cancelled", params: { requestId: id, reason: `${error.message ?? error}` } });
        this.#pending.get(id).reject(error);
      };
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => give(new Error(`${method}: no answer within ${timeout} ms`)), timeout);
      };
      this.#send({ id, method, params: params || meta ? { ...params, ...meta } : undefined });
      this.#pending.set(id, {
        resolve: end(resolve),
        reject: end(reject),
        progress: (notice) => {
          wait();
          this.#try(() => onprogress?.(notice));
        },
      });
      wait();
      signal?.addEventListener("abort", () => give(signal.reason));
    });
  }

  #guard(method) {
    if (!this.#ready) this.#complain(`${method} was called before the handshake had ended: await connect() first`);
  }

  /** Ask the host. The named methods say it more kindly. */
  async request({ method, params }, options) {
    must(this.#transport, "Not connected");
    if (method !== "ping") this.#guard(method);
    return this.#ask(method, params, options);
  }

  /** Tell the host. */
  async notification({ method, params }) {
    this.#send({ method, params });
  }

  /** Ask; in strict mode only what the host said it can do. */
  async #want2() {}
}
