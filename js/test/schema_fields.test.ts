import assert from "node:assert/strict";
import { test } from "node:test";
import { readPlace, writePlace } from "../src/dev/deep_link.js";
import { fieldOf, fits, type Field } from "../src/dev/schema_fields.js";

const fieldsOf = (properties: object, required: string[] = []): Record<string, Field> => {
  const found = fieldOf({ type: "object", properties, required });
  assert.ok(found.kind === "group");
  return found.fields;
};

test("each kind of schema has its field", () => {
  const kinds: [object, string][] = [
    [{ type: "string" }, "string"],
    [{ type: "number" }, "number"],
    [{ type: "integer" }, "integer"],
    [{ type: "boolean" }, "boolean"],
    [{ enum: ["a", 1, null] }, "choice"],
    [{ const: "a" }, "choice"],
    [{ type: "array", items: { type: "string" } }, "list"],
    [{ type: "object", properties: { a: { type: "string" } } }, "group"],
    [{ oneOf: [{ type: "string" }, { type: "number" }] }, "variants"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "string"],
    [{ type: ["integer", "null"] }, "integer"],
    [{ type: ["integer", "string"] }, "json"],
    [{ type: "array" }, "json"],
    [{ type: "object" }, "json"],
    [{ allOf: [{ type: "string" }] }, "json"],
    [{}, "json"],
    [{ $ref: "#/nowhere" }, "json"],
    [{ $ref: "#/%" }, "json"],
    [{ $ref: "https://elsewhere.example/x" }, "json"],
  ];
  for (const [schema, kind] of kinds) {
    assert.equal(fieldsOf({ value: schema }).value!.kind, kind, JSON.stringify(schema));
  }
});

test("required ones, titles, descriptions, defaults and limits are kept", () => {
  const { name, size, note } = fieldsOf(
    {
      name: { type: "string", title: "Name", description: "Whose", minLength: 1, default: "Ada" },
      size: { type: "integer", minimum: 1, maximum: 9 },
      note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    },
    ["name", "note"],
  );
  assert.deepEqual(name, {
    title: "Name",
    description: "Whose",
    required: true,
    default: "Ada",
    kind: "string",
    minLength: 1,
  });
  assert.deepEqual([size!.required, size!.title], [false, "size"]);
  assert.equal(note!.required, false); // null may stand for it
});

test("references are followed, also where a schema refers to itself", () => {
  const node = { type: "object", properties: { next: { $ref: "#/$defs/node" } } };
  let field = fieldOf({
    type: "object",
    properties: { first: { $ref: "#/$defs/node", title: "First" } },
    $defs: { node },
  });
  assert.equal(field.kind === "group" && field.fields.first!.title, "First");
  let depth = 0;
  while (field.kind === "group") {
    field = Object.values(field.fields)[0]!;
    depth += 1;
  }
  assert.equal(field.kind, "json");
  assert.ok(depth < 10);
});

const count = (field: Field): number => {
  if (field.kind === "group")
    return Object.values(field.fields).reduce((sum, each) => sum + count(each), 1);
  if (field.kind === "variants") return field.variants.reduce((sum, each) => sum + count(each), 1);
  return field.kind === "list" ? 1 + count(field.item) : 1;
};

test("a form has so many fields, whatever the schema is", () => {
  const each = (size: number, part: object): object =>
    Object.fromEntries(Array.from({ length: size }, (_, index) => [`p${index}`, part]));
  const whole = { type: "object", properties: each(30, { $ref: "#/$defs/whole" }) };
  const fan = fieldOf({ ...whole, $defs: { whole } });
  assert.ok(fan.kind === "group" && Object.keys(fan.fields).length === 30);
  assert.ok(count(fan) <= 310, String(count(fan)));
  const variants = { oneOf: Array(30).fill({ $ref: "#/$defs/any" }) };
  assert.ok(count(fieldOf({ ...variants, $defs: { any: variants } })) <= 310);
  const wide = each(100_000, { type: "string" });
  const required = Object.keys(wide);
  assert.equal(fieldOf({ type: "object", properties: wide, required }).kind, "json");
  assert.equal(fieldsOf({ value: { enum: required } }).value!.kind, "json");
  assert.equal(Object.keys(fieldsOf(each(200, { type: "string" }))).length, 200);
});

test("names that objects have of their own are no fields", () => {
  const found = fieldOf(
    JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
  );
  assert.deepEqual(found.kind === "group" && Object.keys(found.fields), ["__proto__"]);
  assert.equal(fits(found, JSON.parse('{"constructor":1}')), false);
});

test("values that a field cannot show are edited as JSON", () => {
  const field = fieldOf({
    type: "object",
    properties: {
      sizes: { type: "array", items: { type: "integer" } },
      kind: { enum: ["a", { b: 1 }] },
    },
  });
  assert.ok(fits(field, { sizes: [1, 2], kind: { b: 1 } }));
  assert.ok(fits(field, {}));
  assert.ok(!fits(field, { sizes: ["1"] }));
  assert.ok(!fits(field, { kind: "c" }));
  assert.ok(!fits(field, { other: 1 }));
  assert.ok(!fits(field, []));
});

test("a link has what is on screen, and what is wrong in one is left out", () => {
  const place = { tool: "show", args: { a: ["&", "#"] }, tab: "traffic", theme: "dark" };
  assert.deepEqual(readPlace(writePlace(place)), place);
  assert.equal(writePlace({ args: {}, tab: "" }), "");
  assert.deepEqual(readPlace("#tool=x&args={cut"), { tool: "x" });
  assert.deepEqual(readPlace("#args=[1]&nonsense=1"), {});
});
