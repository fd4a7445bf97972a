import assert from "node:assert/strict";
import { test } from "node:test";
import { ToolError } from "../src/errors.js";
import { makeSchema } from "../src/schema.js";

const NUMBER = { type: "number" };

test("an input describes an object", () => {
  assert.throws(() => makeSchema(NUMBER, "input"), /describes an object/);
  assert.throws(() => makeSchema([], "input"), /A schema is an object/);
  assert.throws(() => makeSchema(Promise.resolve({}), "input"), /A schema is an object/);
  assert.deepEqual(makeSchema({}, "input")._json, { type: "object", properties: {} });
});

test("an output that is no object is wrapped", () => {
  const { _json: json, _wrapped: wrapped } = makeSchema(NUMBER, "output");
  assert.equal(wrapped, true);
  assert.deepEqual(json.properties, { result: NUMBER });
  const union = { anyOf: [{ properties: {} }, { type: "object" }] };
  assert.equal(makeSchema(union, "output")._wrapped, false);
});

test("defaults are filled in, and are copies", async () => {
  const schema = makeSchema(
    { properties: { tags: { default: [] }, size: { default: 1 } } },
    "input",
  );
  const first = await schema._parse({ size: 2 }, "Invalid:");
  assert.deepEqual(first, { tags: [], size: 2 });
  (first.tags as unknown[]).push("x");
  assert.deepEqual((await schema._parse({}, "Invalid:")).tags, []);
});

test("what does not fit is an error of the kind that was asked for", async () => {
  const schema = makeSchema({ required: ["id"] }, "input");
  await assert.rejects(schema._parse({}, "Invalid:", ToolError), (error) => {
    assert.ok(error instanceof ToolError);
    return error.message === "Invalid:\n- id: is required";
  });
});

const standard = (members: object): object => ({
  "~standard": {
    version: 1,
    vendor: "mine",
    validate: (value: unknown) => ({ value }),
    ...members,
  },
});

test("a Standard Schema says its JSON Schema, or the author does", () => {
  const json = { type: "object", title: "mine" };
  const says = standard({ jsonSchema: { input: () => json, output: () => json } });
  assert.equal(makeSchema(says, "input")._json.title, "mine");
  assert.equal(makeSchema(standard({}), "input", { jsonSchema: json })._json.title, "mine");
  assert.equal(makeSchema(standard({}), "input", {}, () => json)._json.title, "mine");
  assert.throws(() => makeSchema({}, "input", { jsonSchema: json }), /goes with a Standard Schema/);
});

test("one that nothing converts is open, says why, and holds values to itself", async () => {
  const throws = (): never => {
    throw new Error("no JSON Schema for dates");
  };
  const refuses = { validate: () => ({ issues: [{ message: "no" }] }) };
  for (const [members, reason] of [
    [refuses, /A mine schema that does not say its JSON Schema/],
    [{ ...refuses, jsonSchema: { input: throws, output: throws } }, /no JSON Schema for dates/],
  ] as const) {
    const schema = makeSchema(standard(members), "input");
    assert.deepEqual(schema._json, { type: "object", properties: {} });
    assert.match(String(schema._fault), reason);
    await assert.rejects(schema._parse({}, "Invalid:"), { message: "Invalid:\n- no" });
  }
});

test("a Standard Schema's issues have their places", async () => {
  const issues = [{ message: "is wrong", path: ["items", { key: 2 }, "id"] }, { message: "odd" }];
  const source = standard({ validate: () => ({ issues }) });
  const schema = makeSchema(source, "input", { jsonSchema: { type: "object" } });
  const text = "Invalid:\n- items[2].id: is wrong\n- odd";
  await assert.rejects(schema._parse({}, "Invalid:"), { message: text });
});
