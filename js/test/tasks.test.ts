import assert from "node:assert/strict";
import { test } from "node:test";
import { ErrorCode } from "../src/errors.js";
import { makeTasks, type TaskMethod } from "../src/tasks.js";
import type { ServedTool } from "../src/served_tool.js";
import type { Task, ToolExtra } from "../src/types.js";

const asked: unknown[] = [];
const peer = {
  _request: async (method: string, params?: object) => {
    asked.push([method, params]);
    return { content: [], answered: method };
  },
};

const toolOf = (run: () => Promise<unknown>, returnsTask = false): ServedTool =>
  ({ run, returnsTask }) as unknown as ServedTool;

const served = () => {
  const control = new AbortController();
  return { _control: control, _extra: { signal: control.signal } as ToolExtra };
};
const { signal } = new AbortController();

test("a task goes on after its call was answered, and its result is kept", async () => {
  const tasks = makeTasks(peer);
  let finish: ((value: unknown) => void) | undefined;
  const work = new Promise((resolve) => (finish = resolve));
  const { task } = await tasks._call(
    toolOf(() => work),
    {},
    5000,
    served(),
  );
  assert.deepEqual([task.status, task.ttl], ["working", 5000]);
  finish?.({ content: [] });
  const result = (await tasks._answer("tasks/result", task.taskId, signal)) as { _meta: object };
  assert.deepEqual(Object.values(result._meta), [{ taskId: task.taskId }]);
  assert.equal(
    ((await tasks._answer("tasks/get", task.taskId, signal)) as Task).status,
    "completed",
  );
  await assert.rejects(
    tasks._answer("tasks/cancel", task.taskId, signal),
    /already ended: completed/,
  );
  tasks._clear();
});

test("a cancelled task stops, and one that fails says so", async () => {
  const tasks = makeTasks(peer);
  const endless = served();
  const { task } = await tasks._call(
    toolOf(() => new Promise(() => undefined)),
    {},
    0,
    endless,
  );
  assert.equal(task.ttl, 600_000);
  await tasks._answer("tasks/cancel", task.taskId, signal);
  assert.deepEqual([task.status, endless._control.signal.aborted], ["cancelled", true]);
  const failing = toolOf(() => Promise.resolve({ isError: true }));
  const failed = await tasks._call(failing, {}, undefined, served());
  await tasks._answer("tasks/result", failed.task.taskId, signal);
  assert.equal(failed.task.status, "failed");
  assert.equal(tasks._list(undefined).tasks.length, 2);
  tasks._clear();
  assert.equal(tasks._list(undefined).tasks.length, 0);
});

test("a handle of the server is handed on, and asked about there", async () => {
  const tasks = makeTasks(peer);
  const handle: Task = { taskId: "theirs", status: "working" };
  tasks._addHandle(handle);
  const tool = toolOf(() => Promise.resolve(handle), true);
  assert.equal((await tasks._call(tool, {}, 1, served())).task, handle);
  await tasks._answer("tasks/get", "theirs", signal);
  assert.deepEqual(asked.at(-1), ["tasks/get", { taskId: "theirs" }]);
  assert.equal(tasks._isHandle({ ...handle }), false);
});

test("an unknown task is an error, and so is an id that is none", async () => {
  const tasks = makeTasks(peer);
  for (const [id, text] of [
    ["x".repeat(200), `Task ${"x".repeat(100)} not found`],
    [5, "Invalid params"],
  ] as const) {
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"] as TaskMethod[]) {
      const error = { code: ErrorCode.InvalidParams, message: text };
      await assert.rejects(tasks._answer(method, id, signal), error);
    }
  }
});

test("a task ends with its time", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const tasks = makeTasks(peer);
  const { task } = await tasks._call(
    toolOf(() => new Promise(() => undefined)),
    {},
    1000,
    served(),
  );
  mock.timers.tick(999);
  assert.equal(((await tasks._answer("tasks/get", task.taskId, signal)) as Task).status, "working");
  mock.timers.tick(1);
  await assert.rejects(tasks._answer("tasks/get", task.taskId, signal), /not found/);
});
