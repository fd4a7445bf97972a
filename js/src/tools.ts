/** The tools that a page registers, and their handles. */
import { must, ToolError } from "./errors.js";
import { hooks } from "./hooks.js";
import { hasOwn, isString, toJson, type JsonObject } from "./json.js";
import { isLazy, makeSchema, type ToolSchema } from "./schema.js";
import type { ServedTool } from "./served_tool.js";
import type { LazySchema, ToJsonSchema, Tool, ToolConfig, ToolExtra } from "./types.js";

/** What a handle has, and an update may change. */
const FIELDS = [
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
  "_meta",
  "execution",
  "enabled",
  "reason",
  "jsonSchema",
  "toJSONSchema",
  "returnsTask",
] as const;

type Fields = ToolConfig & { name: string; enabled: boolean };
type Changes = ToolConfig & { name?: string };

/** For models, of a tool whose schema cannot be converted. */
const OPEN = "Its parameters are not listed; they are checked when it is called.";

const TASK_SUPPORT = ["forbidden", "optional", "required"];

/** Takes `(args, extra)`, as tools with an `inputSchema` do. */
export type ToolFunction = (given: JsonObject, extra: ToolExtra) => unknown;

/** What a tool needs of the App it belongs to. */
export interface ToolOwner {
  /** The tools that are registered. */
  readonly _tools: Set<ServedTool>;
  _find: (name: string) => ServedTool | undefined;
  /** Makes a JSON Schema of the Standard Schemas that cannot do so themselves. */
  _toJSONSchema: () => ToJsonSchema | undefined;
  /** A tool has changed; `listed`: so that hosts can see it. */
  _onChanged: (tool: ServedTool, listed: boolean) => void;
  /** A lazy schema cannot be made. */
  _report: (error: unknown, kind: "schema", name: string) => unknown;
  /** Run a callback on behalf of a host: the result, or a handle of the server's. */
  _runForHost: (name: string, callback: () => unknown, output?: ToolSchema) => Promise<unknown>;
  /** Call a tool as `tools/call` does. */
  _call: (params: JsonObject, served: { _extra: ToolExtra }) => Promise<unknown>;
  _makeExtra: (signal: AbortSignal) => ToolExtra;
}

/** Register a tool with its owner; its handle. */
export function registerTool(
  owner: ToolOwner,
  registration: number,
  config: Changes,
  callback: ToolFunction,
): ServedTool {
  let fields: Fields = { name: "", enabled: true };
  let input: ToolSchema | undefined; // undefined while it is lazy
  let output: ToolSchema | undefined;
  let reported = "undefined";

  const make = (source: unknown, side: "input" | "output", help: Fields = fields): ToolSchema =>
    makeSchema(source, side, help, owner._toJSONSchema());

  /** Change all that is given, or nothing. */
  function apply(changes: Changes): void {
    const next: Fields & JsonObject = { ...fields };
    if (hasOwn(changes, "inputSchema")) next.jsonSchema = undefined; // it was beside another one
    for (const field of FIELDS) {
      if (hasOwn(changes, field)) next[field] = (changes[field] ?? undefined) as never;
    }
    const { name, inputSchema, outputSchema, execution } = next;
    must(isString(name) && /^[\w.-]{1,128}$/.test(name), `Not a tool name: ${name}`);
    must(name === fields.name || !owner._find(name), `Tool ${name} is already registered`);
    must(TASK_SUPPORT.includes(execution?.taskSupport ?? "forbidden"), "Not a taskSupport");
    const lazy = isLazy(inputSchema);
    must(!lazy || inputSchema.constructor === Function, "A lazy inputSchema is sync");
    const nextInput = lazy ? undefined : make(inputSchema ?? {}, "input", next);
    output = outputSchema && make(outputSchema, "output", next);
    input = nextInput;
    fields = next;
  }

  /** The input schema as it is now; undefined if it cannot be made. What is wrong is reported once. */
  function schema(): ToolSchema | undefined {
    const { name, inputSchema, outputSchema } = fields;
    let made: ToolSchema | undefined;
    let problem: unknown;
    try {
      // One that could not be converted is tried again: what converts it may be there by now.
      if (output?._fault) output = make(outputSchema, "output");
      if (input?._fault) input = make(inputSchema, "input");
      made = input ?? make((inputSchema as LazySchema)(), "input");
      tool.error = undefined;
      problem = made._fault ?? output?._fault;
    } catch (error) {
      tool.error = problem = error;
    }
    if (!hooks._loading && String(problem) !== reported) {
      reported = String(problem);
      if (problem) owner._report(problem, "schema", name);
    }
    return made;
  }

  function entry(known: ToolSchema | undefined): Tool | undefined {
    // What is not for the host is taken out.
    const { enabled, reason, jsonSchema, toJSONSchema, returnsTask, _meta, ...listed } = fields;
    if (!enabled) return undefined;
    if (known?._fault) listed.description = [listed.description ?? [], OPEN].flat().join(" ");
    return {
      ...listed,
      inputSchema: known?._json,
      outputSchema: output?._fault ? undefined : output?._json,
      _meta: {
        ..._meta,
        "transom/registration": registration,
        ...(input ? {} : { "transom/lazy": true }),
      },
    } as unknown as Tool;
  }

  /** Check the arguments, and call what the page gave. */
  async function runChecked(given: unknown, extra: ToolExtra): Promise<unknown> {
    const { name, enabled, reason } = fields;
    if (!enabled) throw new ToolError(`Tool ${name} is disabled${reason ? `: ${reason}` : ""}`);
    const known = schema();
    if (!known) throw new ToolError(`Tool ${name} is unavailable right now`);
    const title = `Invalid arguments for tool ${name}:`;
    const checked = await known._parse(given, title, ToolError);
    return callback(checked, Object.assign(extra, { arguments: checked }));
  }

  const tool = {
    registration,
    enable() {
      tool.update({ enabled: true, reason: undefined });
    },
    disable(reason) {
      tool.update({ enabled: false, reason });
    },
    update(changes) {
      if (!owner._tools.has(tool)) return;
      const before = toJson(entry(input));
      apply(changes);
      const differs = toJson(entry(input)) !== before;
      const lazy = typeof changes.inputSchema === "function";
      owner._onChanged(tool, differs || (fields.enabled && lazy));
    },
    remove() {
      tool.disable();
      owner._tools.delete(tool);
    },
    definition() {
      const known = fields.enabled ? schema() : undefined;
      return known && entry(known);
    },
    run: (given, extra) => owner._runForHost(fields.name, () => runChecked(given, extra), output),
    call: (given, signal) =>
      owner._call({ name: fields.name, arguments: given }, { _extra: owner._makeExtra(signal) }),
  } as ServedTool;
  for (const field of FIELDS) {
    Object.defineProperty(tool, field, {
      get: () => fields[field],
      set(value: unknown) {
        tool.update({ [field]: value });
      },
    });
  }
  apply(config);
  owner._tools.add(tool);
  owner._onChanged(tool, fields.enabled);
  return tool;
}
