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

/** The tools of one App, or of the page (what `document.modelContext` registered). */
class Shelf {
  tools = new Set();

  /** What a host is shown: our own, and the page's if we speak for it. */
  visible() {
    return [...this.tools, ...(this === speaker ? page.tools : [])];
  }

  find(name) {
    return this.visible().find((tool) => tool.name === name);
  }

  checkName(name) {
    must(
      isString(name) && /^[\w.-]{1,128}$/.test(name),
      `${quoted(String(name))} is not a tool name: use 1 to 128 of A-Z a-z 0-9 _ . -`,
    );
    must(!this.find(name), `Tool ${name} is already registered`);
  }

  add(tool) {
    this.tools.add(tool);
    this.changed(tool, tool.enabled);
    return tool;
  }

  /** Note a change; `shown` when a listing shows it. */
  changed(tool, shown) {
    mirror(tool);
    if (shown) this.told();
  }

  told() {}

  report(error) {
    console.error(error);
  }
}

const page = new Shelf();
let speaker = page; // the shelf of the App that speaks for the page
let mirror = () => {};
page.find = (name) => speaker.visible().find((tool) => tool.name === name);
page.told = () => speaker !== page && speaker.told();
page.report = (error) => (speaker === page ? console.error(error) : speaker.report(error));

const FIELDS = ["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"];

/**
 * A tool, live: what it says now is what hosts see and what calls are checked against. Setting a
 * field is an `update` with it. Once removed, it does nothing and tells nobody.
 */
class Tool {
  #shelf;
  #run;
  #fields = {};
  #head;
  #input;
  #output;
  #made = "";
  #enabled;
  #reason;
  #error;

  static {
    for (const field of FIELDS) {
      Object.defineProperty(Tool.prototype, field, {
        get() {
          return this.#fields[field];
        },
        set(value) {
          this.update({ [field]: value });
        },
      });
    }
  }

  constructor(shelf, config, run) {
    this.#shelf = shelf;
    this.#run = run;
    this.#enabled = config.enabled ?? true;
    this.#apply(config);
  }

  get enabled() {
    return this.#enabled;
  }

  set enabled(value) {
    if (value) this.enable();
    else this.disable();
  }

  /** Why it is disabled, if that was said. */
  get reason() {
    return this.#reason;
  }

  /** Why its lazy schema could not be made the last time. */
  get error() {
    return this.#error;
  }

  get #stale() {
    return !this.#shelf.tools.has(this);
  }

  enable() {
    if (this.#enabled || this.#stale) return;
    this.#enabled = true;
    this.#reason = undefined;
    this.#shelf.changed(this, true);
  }

  /** Hide it from hosts and refuse calls, telling them `reason`. It stays registered. */
  disable(reason) {
    if (this.#stale) return;
    const was = this.#enabled;
    this.#enabled = false;
    this.#reason = reason;
    this.#shelf.changed(this, was);
  }

  /** Change what is given; undefined takes a field away. An error leaves the tool as it was. */
  update(changes) {
    if (this.#stale) return;
    if (has(changes, "name") && changes.name !== this.name) this.#shelf.checkName(changes.name);
    const before = JSON.stringify(this.#head);
    const lazy = !this.#input;
    if (FIELDS.some((field) => has(changes, field))) {
      this.#apply(changes);
      if (lazy || !this.#input || JSON.stringify(this.#head) !== before) {
        this.#shelf.changed(this, this.#enabled);
      }
    }
    if (has(changes, "enabled")) this.enabled = changes.enabled;
  }

  remove() {
    const { tools } = this.#shelf;
    if (tools.delete(this)) this.#shelf.changed(this, this.#enabled);
  }

  #apply(changes) {
    const fields = { ...this.#fields };
    for (const field of FIELDS) if (has(changes, field)) fields[field] = changes[field] ?? undefined;
    const { name, title, description, inputSchema: source, outputSchema, annotations, _meta } = fields;
    const head = { name, title, description, annotations, _meta };
    for (const [field, value] of Object.entries(head)) {
      const good = /^[a_]/.test(field) ? isObject : isString;
      must(value === undefined || good(value), `Tool ${name}: ${field} is not valid`, TypeError);
    }
    for (const [hint, value] of Object.entries(annotations ?? {})) {
      must(!/Hint$/.test(hint) || typeof value === "boolean", `${hint} is true or false`, TypeError);
    }
    const lazy = isFunction(source) && !source["~standard"];
    must(
      !lazy || source.constructor.name !== "AsyncFunction",
      `Tool ${name}: a lazy inputSchema must be a sync function; keep what is fetched in your ` +
        "state and update the tool when it changes",
      TypeError,
    );
    const input = lazy ? undefined : makeSchema(source ?? {});
    const output = outputSchema && makeSchema(outputSchema, true);
    this.#head = copy({ ...head, inputSchema: input?.json, outputSchema: output?.json });
    this.#fields = fields;
    this.#input = input;
    this.#output = output;
    this.#error = undefined;
  }

  /** The input schema as it is now; undefined if a lazy one cannot be made. */
  #schema() {
    if (this.#input) return this.#input;
    ...
  }
}
