/** Lists and calls the tools of a View for its host, and notifies the host of changes. */
import { ErrorCode, must, ToolError } from "./errors.js";
import { hooks } from "./hooks.js";
import { asText, isObject, isString, type JsonObject } from "./json.js";
import { asRow, describeUnlisted, pageOf } from "./listing.js";
import type { Peer, Served } from "./peer.js";
import type { Reporter } from "./reporter.js";
import { asBlock, toResult } from "./results.js";
import type { ToolSchema } from "./schema.js";
import type { ServedTool } from "./served_tool.js";
import type { Tasks } from "./tasks.js";
import { registerTool, type ToolOwner } from "./tools.js";
import type {
  CallHandler,
  CallToolResult,
  ListedTools,
  ListHandler,
  Task,
  Tool,
  ToolConfig,
  ToolExtra,
} from "./types.js";

const MAX_ROWS = 10_000;

/** What a page lists, if it is not a bare array. */
type Listed = Partial<Exclude<ListedTools, unknown[]>>;

/**
 * `canNotify` says whether both sides declared notifications of changed tools, `toJSONSchema` has the
 * converter of the App.
 */
export function makeToolService(
  peer: Peer,
  tasks: Tasks,
  reporter: Reporter,
  {
    _canNotify: canNotify,
    _toJSONSchema: toJSONSchema,
  }: Pick<ToolOwner, "_toJSONSchema"> & { _canNotify: () => boolean },
) {
  const tools = new Set<ServedTool>();
  const handlers: { _onList?: ListHandler | undefined; _onCall?: CallHandler | undefined } = {};
  let registrations = 0;
  let isNoticeDue = false;

  /** Whether the page has offered tools in any way, also if they are gone by now. */
  const isUsed = (): boolean => registrations > 0 || Boolean(handlers._onList ?? handlers._onCall);

  const find = (name: string): ServedTool | undefined =>
    [...tools].find((tool) => tool.name === name);

  /** Add a tool; its handle. Without an inputSchema the callback gets `(extra)` alone. */
  function register(
    name: string,
    config: ToolConfig,
    callback: (...given: unknown[]) => unknown,
  ): ServedTool {
    const run = config.inputSchema ? callback : (_: unknown, extra: unknown) => callback(extra);
    const tool = registerTool(owner, registrations + 1, { ...config, name }, run);
    registrations += 1;
    return tool;
  }

  /** Notify the host of what has changed, once for all that changes in this turn. */
  function onChanged(tool: ServedTool, listed: boolean): void {
    if (listed && !isNoticeDue && canNotify()) {
      isNoticeDue = true;
      queueMicrotask(() => {
        if (isNoticeDue) notify();
      });
    }
    hooks._toolChanged(tool);
  }

  /** Notify the host now that the tools have changed. */
  function notify(): void {
    isNoticeDue = false;
    if (canNotify()) peer._notify("notifications/tools/list_changed", {});
  }

  /** Answer `tools/list`: registered tools first, then those of the page's handler and the browser. */
  async function list(cursor: unknown, extra: ToolExtra): Promise<JsonObject> {
    const registered = [...tools];
    const define = (): Tool[] => registered.flatMap((tool) => tool.definition() ?? []);
    let rows = define();
    if (hooks._loading) {
      await hooks._loading;
      rows = define();
    }
    const add = (given: unknown): void => {
      const row = asRow(given);
      if (!row) void reporter._report(new Error(`Not a tool: ${asText(given)}`), "error");
      else if (!find(row.name)) rows.push(row);
    };
    let next: string | undefined;
    do {
      const given = (await handlers._onList?.({ cursor: next! }, extra)) as Listed | undefined;
      (given?.tools ?? (given as unknown[] | undefined) ?? []).forEach(add);
      next = given?.nextCursor;
    } while (next && rows.length < MAX_ROWS);
    (await hooks._browserTools()).forEach(add);
    const [page, nextCursor] = pageOf(rows, cursor);
    return { tools: page, nextCursor, _meta: cursor ? undefined : describeUnlisted(registered) };
  }

  /** Answer `tools/call`: registered tools first, then the browser's, then the page's handler. */
  async function call(
    params: JsonObject,
    { _extra: extra, _control: control }: Partial<Served> & Pick<Served, "_extra">,
  ): Promise<unknown> {
    const { name, task } = params;
    const given = params.arguments ?? {};
    must(
      isString(name) && isObject(given) && isObject(task ?? {}),
      "Invalid params",
      ErrorCode.InvalidParams,
    );
    const tool = find(name);
    const support = tool?.execution?.taskSupport ?? "forbidden";
    if (task) {
      const refused = `Tool ${name} cannot run as a task`;
      must(tool && control && support !== "forbidden", refused, ErrorCode.MethodNotFound);
      return tasks._call(tool, given, (task as JsonObject).ttl, {
        _extra: extra,
        _control: control,
      });
    }
    const refused = `Tool ${name} must be called as a task`;
    must(support !== "required", refused, ErrorCode.MethodNotFound);
    if (hooks._loading) await hooks._loading;
    if (tool) return tasks._whole(await tool.run(given, extra), extra.signal);
    const other = (await hooks._browserTool(name)) ?? handlers._onCall;
    must(other, `Tool ${name} not found`, ErrorCode.InvalidParams);
    return runForHost(name, () => other({ ...params, name, arguments: given }, extra));
  }

  /** Run a callback on behalf of a host: the result, or a handle of the server's. */
  async function runForHost(
    name: string,
    callback: () => unknown,
    output?: ToolSchema,
  ): Promise<CallToolResult | Task> {
    try {
      const value = await callback();
      return tasks._isHandle(value) ? value : await toResult(value, output);
    } catch (error) {
      if (error instanceof ToolError) return { content: [asBlock(error.message)], isError: true };
      throw reporter._toError(error, `Tool ${name} failed`, "tool", name);
    }
  }

  const owner: ToolOwner = {
    _tools: tools,
    _find: find,
    _toJSONSchema: toJSONSchema,
    _onChanged: onChanged,
    _report: reporter._report,
    _runForHost: runForHost,
    _call: call,
    _makeExtra: peer._makeExtra,
  };

  return {
    _tools: tools,
    _handlers: handlers,
    _isUsed: isUsed,
    _find: find,
    _register: register,
    _notify: notify,
    _list: list,
    _call: call,
  };
}
