import assert from "node:assert/strict";
import { test } from "node:test";
import { toResult } from "../src/results.js";
import { makeSchema } from "../src/schema.js";

const text = (words: string): object => ({ type: "text", text: words });

const CASES: [returned: unknown, result: object][] = [
  [undefined, { content: [text("Done.")] }],
  ["words", { content: [text("words")] }],
  [text("words"), { content: [text("words")] }],
  [[text("a"), text("b")], { content: [text("a"), text("b")] }],
  [
    { isError: true, content: [text("no")] },
    { isError: true, content: [text("no")] },
  ],
  [{ structuredContent: { a: 1 } }, { structuredContent: { a: 1 }, content: [text('{"a":1}')] }],
  [{ a: 1 }, { content: [text('{"a":1}')], structuredContent: { a: 1 } }],
  [
    { content: "mine" },
    { content: [text('{"content":"mine"}')], structuredContent: { content: "mine" } },
  ],
  [[], { content: [text("[]")], structuredContent: { result: [] } }],
  [5, { content: [text("5")], structuredContent: { result: 5 } }],
  [{ type: "text" }, { content: [text('{"type":"text"}')], structuredContent: { type: "text" } }],
];
for (const [returned, result] of CASES) {
  test(`returned: ${JSON.stringify(returned)}`, async () => {
    assert.deepEqual(await toResult(returned), result);
  });
}

test("output is held to its schema, unless it is an error", async () => {
  const output = makeSchema({ type: "array", maxItems: 1 }, "output");
  assert.deepEqual((await toResult([1], output)).structuredContent, { result: [1] });
  await assert.rejects(toResult([1, 2], output), /Invalid output:\n- result: must have maxItems 1/);
  assert.equal((await toResult({ isError: true, content: [] }, output)).isError, true);
});

test("what cannot be said as JSON is refused", async () => {
  await assert.rejects(toResult(() => 1));
});
