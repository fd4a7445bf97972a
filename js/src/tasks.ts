/**
 * Calls that a host follows as tasks: those that go on in this page after they were answered, and
 * those that the server works on, whose handles the page has returned to the host.
 */
import { cancelled, ErrorCode, must } from "./errors.js";
import { isString } from "./json.js";
import { pageOf } from "./listing.js";
import type { Peer, Served } from "./peer.js";
import type { ServedTool } from "./tools.js";
import type { CallToolResult, Task } from "./types.js";

const MAX_TASKS = 1000;
const DEFAULT_TTL = 600_000;
const POLL_INTERVAL = 500;
const DAY = 86_400_000;

/** A task of this page, with its result as soon as there is one. */
interface RunningTask {
  readonly task: Task;
  readonly result: Promise<CallToolResult>;
  readonly control: AbortController;
  readonly forget: () => void;
}

export type TaskMethod = "tasks/get" | "tasks/result" | "tasks/cancel";

export type Tasks = ReturnType<typeof makeTasks>;

export function makeTasks(peer: Pick<Peer, "request">) {
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

  /** The result itself, from the server if it works on it. */
  async function whole(value: unknown, signal: AbortSignal): Promise<CallToolResult> {
    if (!isHandle(value)) return value as CallToolResult;
    const { taskId } = value;
    return peer.request("tasks/result", { taskId }, { timeout: DAY, signal });
  }

  /** Answer a call with a handle: of the server's task, or of one in this page. */
  async function call(
    tool: ServedTool,
    given: unknown,
    ttl: unknown,
    { extra, control }: Served,
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
    const now = new Date().toISOString();
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
      task.lastUpdatedAt = new Date().toISOString();
    };
    const result = new Promise<CallToolResult>((resolve, reject) => {
      signal.addEventListener("abort", () => {
        reject(cancelled("task"));
      });
      work.then((made) => whole(made, signal)).then(resolve, reject);
    });
    result.then(
      ({ isError }) => {
        become(isError ? "failed" : "completed");
      },
      () => {
        become(signal.aborted ? "cancelled" : "failed");
      },
    );
    const forget = (): void => {
      clearTimeout(timer);
      tasks.delete(taskId);
      control.abort();
    };
    const timer = setTimeout(forget, task.ttl!);
    tasks.set(taskId, { task, result, control, forget });
    return task;
  }

  /** Stop all of them. */
  function clear(): void {
    for (const { forget } of tasks.values()) forget();
    handedOn.clear();
  }

  /** Answer `tasks/list`. */
  function list(cursor: unknown): { tasks: Task[]; nextCursor: string | undefined } {
    const [page, nextCursor] = pageOf([...tasks.values()], cursor);
    return { tasks: page.map(({ task }) => task), nextCursor };
  }

  /** Answer what the host asks about one task, here or at the server. */
  async function answer(method: TaskMethod, taskId: unknown, signal: AbortSignal): Promise<object> {
    must(isString(taskId), "Invalid params", ErrorCode.InvalidParams);
    if (handedOn.has(taskId)) return peer.request(method, { taskId }, { timeout: DAY, signal });
    const found = tasks.get(taskId);
    must(found, `Task ${taskId.slice(0, 100)} not found`, ErrorCode.InvalidParams);
    if (method === "tasks/get") return found.task;
    return method === "tasks/result" ? resultOf(found) : cancel(found);
  }

  return { addHandle, isHandle, whole, call, clear, list, answer };
}

async function resultOf({ task: { taskId }, result }: RunningTask): Promise<CallToolResult> {
  const made = await result;
  const related = { "io.modelcontextprotocol/related-task": { taskId } };
  return { ...made, _meta: { ...made._meta, ...related } };
}

async function cancel({ task, result, control }: RunningTask): Promise<Task> {
  const { taskId, status } = task;
  const ended = `Task ${taskId} has already ended: ${status}`;
  must(status === "working", ended, ErrorCode.InvalidParams);
  control.abort();
  await result.catch(() => undefined);
  return task;
}
