/**
 * Calls that a host follows as tasks: those that go on in this page after they were answered, and
 * those that the server works on, whose handles the page has returned to the host.
 */
import { cancelled, ErrorCode, must } from "./errors.js";
import { isString } from "./json.js";
import { pageOf } from "./listing.js";
import type { Peer, Served } from "./peer.js";
import type { ServedTool } from "./served_tool.js";
import type { CallToolResult, Task } from "./types.js";

const MAX_TASKS = 1000;
const DEFAULT_TTL = 600_000;
const POLL_INTERVAL = 500;
const DAY = 86_400_000;

const timestamp = (): string => new Date().toISOString();

/** A task of this page, with its result as soon as there is one. */
interface RunningTask {
  readonly _task: Task;
  readonly _result: Promise<CallToolResult>;
  readonly _control: AbortController;
  readonly _forget: () => void;
}

export type TaskMethod = "tasks/get" | "tasks/result" | "tasks/cancel";

export type Tasks = ReturnType<typeof makeTasks>;

export function makeTasks(peer: Pick<Peer, "_request">) {
  const tasks = new Map<string, RunningTask>();
  const handles = new WeakSet(); // that the server gave
  const handedOn = new Set<string>(); // ids of those that the host has now

  /** Remember a handle that the server gave. */
  function addHandle(task: Task): void {
    handles.add(task);
  }

  /** Whether a value is a handle that the server gave. */
  function isHandle(value: unknown): value is Task {
    return handles.has(value as object);
  }

  /** Ask the server about a task of its own. */
  const askServer = (method: TaskMethod, taskId: string, signal: AbortSignal): Promise<object> =>
    peer._request(method, { taskId }, { timeout: DAY, signal });

  /** The result itself, from the server if it works on it. */
  async function whole(value: unknown, signal: AbortSignal): Promise<CallToolResult> {
    if (!isHandle(value)) return value as CallToolResult;
    return askServer("tasks/result", value.taskId, signal);
  }

  /** Answer a call with a handle: of the server's task, or of one in this page. */
  async function call(
    tool: ServedTool,
    given: unknown,
    ttl: unknown,
    { _extra: extra, _control: control }: Served,
  ): Promise<{ task: Task }> {
    must(tasks.size < MAX_TASKS, "Too many tasks", ErrorCode.Refused);
    const work = tool.run(given, extra);
    const handle = tool.returnsTask ? await work : undefined;
    if (!isHandle(handle)) return { task: keep(work, ttl, control) };
    handedOn.add(handle.taskId);
    if (handedOn.size > MAX_TASKS) handedOn.delete([...handedOn][0]!);
    return { task: handle };
  }

  /** Store a running task, and its result, for its `ttl`. */
  function keep(work: Promise<unknown>, ttl: unknown, control: AbortController): Task {
    const { signal } = control;
    const taskId = crypto.getRandomValues(new Uint32Array(4)).join("-");
    const lifetime = Math.ceil(Math.min(ttl as number, DAY));
    const now = timestamp();
    const task: Task = {
      taskId,
      ttl: lifetime > 0 ? lifetime : DEFAULT_TTL,
      pollInterval: POLL_INTERVAL,
      status: "working",
      createdAt: now,
      lastUpdatedAt: now,
    };
    const become = (status: Task["status"]): void => {
      task.status = status;
      task.lastUpdatedAt = timestamp();
    };
    const result = new Promise<CallToolResult>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(cancelled("task")));
      work.then((made) => whole(made, signal)).then(resolve, reject);
    });
    result.then(
      ({ isError }) => become(isError ? "failed" : "completed"),
      () => become(signal.aborted ? "cancelled" : "failed"),
    );
    const forget = (): void => {
      clearTimeout(timer);
      tasks.delete(taskId);
      control.abort();
    };
    const timer = setTimeout(forget, task.ttl!);
    tasks.set(taskId, { _task: task, _result: result, _control: control, _forget: forget });
    return task;
  }

  /** Stop all of them. */
  function clear(): void {
    for (const { _forget: forget } of tasks.values()) forget();
    handedOn.clear();
  }

  /** Answer `tasks/list`. */
  function list(cursor: unknown): { tasks: Task[]; nextCursor: string | undefined } {
    const [page, nextCursor] = pageOf([...tasks.values()], cursor);
    return { tasks: page.map(({ _task }) => _task), nextCursor };
  }

  /** Answer what the host asks about one task, here or at the server. */
  async function answer(method: TaskMethod, taskId: unknown, signal: AbortSignal): Promise<object> {
    must(isString(taskId), "Invalid params", ErrorCode.InvalidParams);
    if (handedOn.has(taskId)) return askServer(method, taskId, signal);
    const found = tasks.get(taskId);
    must(found, `Task ${taskId.slice(0, 100)} not found`, ErrorCode.InvalidParams);
    if (method === "tasks/get") return found._task;
    return method === "tasks/result" ? resultOf(found) : cancel(found);
  }

  return {
    _addHandle: addHandle,
    _isHandle: isHandle,
    _whole: whole,
    _call: call,
    _clear: clear,
    _list: list,
    _answer: answer,
  };
}

async function resultOf({
  _task: { taskId },
  _result: result,
}: RunningTask): Promise<CallToolResult> {
  const made = await result;
  const related = { "io.modelcontextprotocol/related-task": { taskId } };
  return { ...made, _meta: { ...made._meta, ...related } };
}

async function cancel({
  _task: task,
  _result: result,
  _control: control,
}: RunningTask): Promise<Task> {
  const { taskId, status } = task;
  const ended = `Task ${taskId} has already ended: ${status}`;
  must(status === "working", ended, ErrorCode.InvalidParams);
  control.abort();
  await result.catch(() => undefined);
  return task;
}
