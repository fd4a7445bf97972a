import assert from "node:assert/strict";
import { test } from "node:test";
import { isJsonRpc, isNotification, readMessage } from "../src/wire.js";

const message = (members: object): object => ({ jsonrpc: "2.0", ...members });

test("a notification is told by a segment of its method", () => {
  for (const method of ["notifications/progress", "ui/notifications/tool-input"]) {
    assert.equal(isNotification(method), true);
  }
  for (const method of ["tools/list", "ui/initialize", "ui/notifications-of-mine", ""]) {
    assert.equal(isNotification(method), false);
  }
});

test("requests, notifications and answers are read", () => {
  assert.deepEqual(readMessage(message({ id: 1, method: "ping" })).params, {});
  assert.equal(readMessage(message({ method: "notifications/progress" })).id, undefined);
  assert.deepEqual(readMessage(message({ id: "a", result: { x: 1 } })).result, { x: 1 });
  assert.deepEqual(readMessage(message({ id: 0, error: { code: 1 } })).error, { code: 1 });
});

const INVALID: Record<string, object> = {
  "an answer without result or error": { id: 1 },
  "a result that is no object": { id: 1, result: 5 },
  "params that are no object": { id: 1, method: "ping", params: [] },
  "a notification with an id": { id: 1, method: "notifications/progress" },
  "a request without an id": { method: "tools/list" },
  "an id that is null": { id: null, method: "ping" },
  "an id that is a fraction": { id: 1.5, method: "ping" },
  "an id that is an object": { id: {}, result: {} },
  "a method that is no text": { id: 1, method: 5 },
  "more than is taken": { id: 1, result: { text: "x".repeat(2 ** 24) } },
};
for (const [what, members] of Object.entries(INVALID)) {
  test(`refused: ${what}`, () => {
    assert.throws(() => readMessage(message(members)), /Invalid message/);
  });
}

test("what does not claim to be JSON-RPC is not ours", () => {
  for (const data of [undefined, null, 5, "text", {}, { jsonrpc: "1.0" }, [message({})]]) {
    assert.equal(isJsonRpc(data), false);
  }
  assert.equal(isJsonRpc(message({})), true);
});
