import assert from "node:assert/strict";
import { test } from "node:test";
import { z as zod3 } from "zod-3";
import { z as zod3v4 } from "zod-3/v4";
import { z as zod40 } from "zod-4.0";
import { z as zod41 } from "zod-4.1";
import { copy, type JsonObject } from "../src/json.js";
import { faultsOf } from "../src/json_schema.js";
import { zodToJsonSchema } from "../src/zod.js";

// The same calls in all of them, of which no type says so.
type Zod = any;
const VERSIONS: Record<string, Zod> = {
  "3.25": zod3,
  "3.25, subpath v4": zod3v4,
  "4.0": zod40,
  "4.1": zod41,
};

enum Size {
  Small,
  Large,
}

/** What a schema is made of, values that fit it, and values that do not. */
const CASES: Record<string, [make: (z: Zod) => unknown, fit: unknown[], others: unknown[]]> = {
  string: [(z) => z.string().min(2).max(3), ["ab", "abc"], ["a", "abcd", 1, null]],
  pattern: [(z) => z.string().regex(/^a/).regex(/b$/), ["ab"], ["a", "b"]],
  integer: [(z) => z.number().int().min(1).max(5), [1, 5], [0, 6, 1.5, "1"]],
  number: [(z) => z.number().gt(0).lt(1), [0.5], [0, 1]],
  boolean: [(z) => z.boolean(), [true], [0]],
  null: [(z) => z.null(), [null], [0]],
  never: [(z) => z.object({ a: z.never().optional() }), [{}], [{ a: 1 }]],
  literal: [(z) => z.literal("a"), ["a"], ["b"]],
  enum: [(z) => z.enum(["a", "b"]), ["a", "b"], ["c"]],
  "enum of TypeScript": [(z) => z.nativeEnum(Size), [0, 1], [2, "Small"]],
  array: [
    (z) => z.array(z.string()).min(1).max(2),
    [["a"], ["a", "b"]],
    [[], ["a", "b", "c"], [1]],
  ],
  tuple: [(z) => z.tuple([z.string(), z.number()]), [["a", 1]], [["a"], [1, "a"], ["a", 1, 2]]],
  "tuple with more": [
    (z) => z.tuple([z.string()]).rest(z.number()),
    [["a"], ["a", 1]],
    [["a", "b"]],
  ],
  record: [(z) => z.record(z.string(), z.number()), [{}, { a: 1 }], [{ a: "b" }]],
  union: [(z) => z.union([z.string(), z.number()]), ["a", 1], [true]],
  intersection: [
    (z) => z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })),
    [{ a: "", b: "" }],
    [{ a: "" }],
  ],
  discriminated: [
    (z) =>
      z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("a"), a: z.string() }),
        z.object({ kind: z.literal("b"), b: z.string() }),
      ]),
    [
      { kind: "a", a: "" },
      { kind: "b", b: "" },
    ],
    [{ kind: "a", b: "" }, { kind: "c" }],
  ],
  object: [
    (z) => z.object({ a: z.string(), b: z.number().optional() }),
    [{ a: "" }, { a: "", b: 1 }, { a: "", more: 1 }],
    [{}, { a: "", b: "" }, []],
  ],
  "strict object": [(z) => z.object({ a: z.string() }).strict(), [{ a: "" }], [{ a: "", b: 1 }]],
  "loose object": [(z) => z.object({ a: z.string() }).passthrough(), [{ a: "", b: 1 }], [{}]],
  catchall: [(z) => z.object({}).catchall(z.number()), [{ a: 1 }], [{ a: "" }]],
  nullable: [
    (z) => z.object({ a: z.string().nullable() }),
    [{ a: null }, { a: "" }],
    [{}, { a: 1 }],
  ],
  nullish: [(z) => z.object({ a: z.string().nullish() }), [{}, { a: null }], [{ a: 1 }]],
  default: [(z) => z.object({ a: z.number().default(1) }), [{}, { a: 2 }], [{ a: "" }]],
  refined: [(z) => z.object({ a: z.string().refine(() => true) }), [{ a: "" }], [{ a: 1 }]],
  transformed: [(z) => z.object({ a: z.string().transform(Number) }), [{ a: "1" }], [{ a: 1 }]],
  piped: [(z) => z.string().transform(Number).pipe(z.number()), ["1"], [1]],
  readonly: [(z) => z.object({ a: z.string() }).readonly(), [{ a: "" }], [{}]],
  branded: [(z) => z.string().brand("Id"), [""], [1]],
  lazy: [(z) => z.lazy(() => z.string()), [""], [1]],
  recursive: [
    (z) => {
      const tree = z.object({ name: z.string(), children: z.array(z.lazy(() => tree)) });
      return z.object({ tree });
    },
    [{ tree: { name: "", children: [{ name: "", children: [] }] } }],
    [{ tree: { name: "", children: [{ name: 1, children: [] }] } }],
  ],
  "recursive at its root": [
    (z) => {
      const list = z.object({ next: z.lazy(() => list).optional() });
      return list;
    },
    [{}, { next: { next: {} } }],
    [{ next: { next: 1 } }],
  ],
};

const options = { target: "draft-2020-12", io: "input", typeMode: "input" } as const;

for (const [version, z] of Object.entries(VERSIONS)) {
  test(`zod ${version}: values fit the JSON Schema that fit the schema`, () => {
    for (const [name, [make, fit, others]] of Object.entries(CASES)) {
      const schema = make(z) as { safeParse: (value: unknown) => { success: boolean } };
      const json = copy(zodToJsonSchema(schema, options)) as JsonObject;
      for (const value of [...fit, ...others]) {
        const isFit = fit.includes(value);
        assert.equal(schema.safeParse(value).success, isFit, `zod itself: ${name}`);
        const faults = [...faultsOf(json, json, value)];
        assert.equal(faults.length === 0, isFit, `${name}: ${JSON.stringify([value, json])}`);
      }
    }
  });

  test(`zod ${version}: models read what is described`, () => {
    const schema = z.object({
      to: z.string().email().describe("Who gets it"),
      at: z.string().datetime().optional().describe("When"),
      copies: z.number().int().default(2),
      on: z.coerce.date(),
      anything: z.unknown(),
    });
    const json = copy(zodToJsonSchema(schema.describe("A letter"), options)) as JsonObject;
    const properties = json.properties as Record<string, JsonObject>;
    assert.equal(json.description, "A letter");
    assert.equal(properties.to!.format, "email");
    assert.equal(properties.to!.description, "Who gets it");
    assert.equal(properties.at!.format, "date-time");
    assert.equal(properties.at!.description, "When");
    assert.deepEqual(properties.copies, { type: "integer", default: 2 });
    assert.deepEqual(properties.on, { type: "string", format: "date-time" });
    assert.deepEqual(properties.anything, {});
    assert.deepEqual((json.required as string[]).slice(0, 2), ["to", "on"]);
  });

  test(`zod ${version}: what comes out is not what goes in`, () => {
    const schema = z.object({ a: z.number().default(1), b: z.string().transform(Number) });
    const output = { ...options, io: "output", typeMode: "output" } as const;
    const json = copy(zodToJsonSchema(schema, output)) as JsonObject;
    assert.deepEqual(json.required, ["a", "b"]);
    assert.deepEqual((json.properties as JsonObject).b, {});
    assert.deepEqual((zodToJsonSchema(schema, options) as JsonObject).required, ["b"]);
  });
}
