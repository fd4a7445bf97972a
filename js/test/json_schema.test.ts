import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, faultsOf } from "../src/json_schema.js";

const faults = (schema: object, value: unknown): string =>
  describe(faultsOf(schema as Record<string, unknown>, schema, value)).trim();

/** A schema, a value that it accepts, one that it refuses, and what it says of that. */
const CASES: [schema: object, good: unknown, bad: unknown, text: string][] = [
  [{ type: "integer" }, 1, 1.5, "- expected integer, got number"],
  [{ type: "number" }, 1, "1", "- expected number, got string"],
  [{ type: ["string", "null"] }, null, 1, "- expected string or null, got integer"],
  [{ enum: [1, { a: 1 }] }, { a: 1 }, { a: 2 }, '- must be one of [1,{"a":1}]'],
  [{ const: "x" }, "x", "y", '- must be one of ["x"]'],
  [{ pattern: "^a+$" }, "aa", "ab", "- must match the pattern ^a+$"],
  [{ minLength: 2 }, "😀😀", "😀", "- must have minLength 2"],
  [{ maxItems: 1 }, [1], [1, 2], "- must have maxItems 1"],
  [{ minimum: 1 }, 1, 0, "- must have minimum 1"],
  [{ exclusiveMaximum: 1 }, 0, 1, "- must have exclusiveMaximum 1"],
  [{ required: ["a"] }, { a: 1 }, {}, "- a: is required"],
  [{ additionalProperties: false }, {}, { a: 1 }, "- a: is not expected"],
  [{ properties: { a: false } }, {}, { a: 1 }, "- a: is not allowed"],
  [{ items: { type: "string" } }, ["a"], ["a", 1], "- [1]: expected string, got integer"],
  [{ prefixItems: [{ const: 1 }] }, [1, 2], [2], "- [0]: must be one of [1]"],
  [{ not: { type: "null" } }, 1, null, "- is not allowed"],
  [{ allOf: [{ minimum: 1 }] }, 1, 0, "- must have minimum 1"],
  [{ anyOf: [{ type: "null" }, { minimum: 1 }] }, null, 0, "- expected null, got integer"],
  [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 1, 2, "- fits more than one alternative"],
];
for (const [schema, good, bad, text] of CASES) {
  test(`held to ${JSON.stringify(schema)}`, () => {
    assert.equal(faults(schema, good), "");
    assert.equal(faults(schema, bad), text);
  });
}

test("a reference leads to a part of the schema, also to itself", () => {
  const schema = {
    $defs: { tree: { type: "object", properties: { next: { $ref: "#/$defs/tree" } } } },
    $ref: "#/$defs/tree",
  };
  assert.equal(faults(schema, { next: { next: {} } }), "");
  assert.equal(faults(schema, { next: { next: 1 } }), "- next.next: expected object, got integer");
});

test("a name of every object's prototype is a property like any other", () => {
  assert.equal(faults({ required: ["constructor"] }, {}), "- constructor: is required");
  assert.equal(faults({ properties: {}, additionalProperties: false }, { toString: 1 }).length, 27);
});

test("ten faults are listed, each once and cut", () => {
  const lines = faults({ items: { type: "null" } }, Array(50).fill(1)).split("\n");
  assert.equal(lines.length, 10);
  const [line] = faults({ enum: ["x".repeat(1000)] }, 1).split("\n");
  assert.equal(line?.length, 202);
});
