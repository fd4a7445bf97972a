/**
 * The fields of a form for values of a JSON Schema, without a page. What a form cannot show (`json`) is
 * written as JSON.
 */
import { isObject, type JsonObject } from "../json.js";

interface Common {
  title: string;
  description?: string;
  /** Whether a value has to be there. */
  required: boolean;
  default?: unknown;
}

export type Field = Common &
  (
    | { kind: "string"; format?: string; pattern?: string; minLength?: number; maxLength?: number }
    | { kind: "number" | "integer"; minimum?: number; maximum?: number }
    | { kind: "boolean" }
    | { kind: "choice"; options: unknown[] }
    | { kind: "list"; item: Field; minItems?: number; maxItems?: number }
    | { kind: "group"; fields: Record<string, Field> }
    | { kind: "variants"; variants: Field[] }
    | { kind: "json" }
  );

const MAX_DEPTH = 6; // schemas may refer to themselves
const MAX_FIELDS = 300; // of a form; what is beyond is JSON
const MAX_OPTIONS = 2000; // of a choice

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value ? value : undefined;
const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" ? value : undefined;

/** A part of a reference; one that is not encoded as in an address is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Follow references within the schema. What is beside a reference counts as well. */
function resolve(schema: unknown, root: JsonObject): JsonObject | undefined {
  let found = schema;
  for (let step = 0; step < 20; step += 1) {
    if (!isObject(found)) return found === true ? {} : undefined;
    const { $ref, ...beside } = found;
    if (typeof $ref !== "string") return found;
    if (!$ref.startsWith("#/")) return undefined;
    let target: unknown = root;
    for (const part of $ref.slice(2).split("/")) {
      const key = decoded(part).replaceAll("~1", "/").replaceAll("~0", "~");
      target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
    }
    if (!isObject(target)) return undefined;
    found = { ...target, ...beside };
  }
  return undefined;
}

/** The attributes that are given. */
function given<Value extends object>(value: Value): Value {
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== undefined),
  ) as Value;
}

/** The field for a schema; `name` is its title if it has none. */
export function fieldOf(
  schema: unknown,
  { name = "", required = true, root, depth = 0, left = { fields: MAX_FIELDS } }: FieldOptions = {},
): Field {
  const whole = root ?? (isObject(schema) ? schema : {});
  const found = resolve(schema, whole);
  const common: Common = given({
    title: textOf(found?.title) ?? name,
    description: textOf(found?.description),
    required,
    default: found && "default" in found ? found.default : undefined,
  });
  if (!found || depth > MAX_DEPTH) return { ...common, kind: "json" };
  const below = { root: whole, depth: depth + 1, left };
  if ("const" in found) return { ...common, kind: "choice", options: [found.const] };
  if (Array.isArray(found.enum) && found.enum.length <= MAX_OPTIONS)
    return { ...common, kind: "choice", options: found.enum };
  const alternatives = found.oneOf ?? found.anyOf;
  if (Array.isArray(alternatives)) {
    if (alternatives.length > left.fields) return { ...common, kind: "json" };
    left.fields -= alternatives.length;
    const variants = alternatives.filter((each) => !isNull(each, whole));
    if (variants.length === 1) {
      const only = fieldOf(variants[0], { name, required: false, ...below });
      return { ...only, ...common, required: required && variants.length === alternatives.length };
    }
    const fields = variants.map((each, index) =>
      fieldOf(each, { name: `Variant ${index + 1}`, required: true, ...below }),
    );
    return { ...common, kind: "variants", variants: fields };
  }
  const { type } = found;
  const types = Array.isArray(type) ? type.filter((each) => each !== "null") : [type];
  if (types.length !== 1) return { ...common, kind: "json" };
  const nullable = Array.isArray(type) && type.length > types.length;
  return { ...typed(types[0], found, common, below), ...(nullable ? { required: false } : {}) };
}

interface FieldOptions {
  name?: string;
  required?: boolean;
  root?: JsonObject;
  depth?: number;
  /** How many fields the form may still have. */
  left?: { fields: number };
}

const isNull = (schema: unknown, root: JsonObject): boolean =>
  resolve(schema, root)?.type === "null";

function typed(
  type: unknown,
  found: JsonObject,
  common: Common,
  below: { root: JsonObject; depth: number; left: { fields: number } },
): Field {
  switch (type) {
    case "string":
      return given({
        ...common,
        kind: "string" as const,
        format: textOf(found.format),
        pattern: textOf(found.pattern),
        minLength: numberOf(found.minLength),
        maxLength: numberOf(found.maxLength),
      });
    case "number":
    case "integer":
      return given({
        ...common,
        kind: type,
        minimum: numberOf(found.minimum),
        maximum: numberOf(found.maximum),
      });
    case "boolean":
      return { ...common, kind: "boolean" };
    case "array": {
      if (!isObject(found.items)) return { ...common, kind: "json" };
      const item = fieldOf(found.items, { name: "Item", ...below });
      const { minItems, maxItems } = found;
      const limits = { minItems: numberOf(minItems), maxItems: numberOf(maxItems) };
      return given({ ...common, kind: "list" as const, item, ...limits });
    }
    case "object": {
      const { properties } = found;
      if (!isObject(properties) || Object.keys(properties).length === 0) {
        const isOpen = found.additionalProperties !== false && below.depth > 1;
        return isOpen ? { ...common, kind: "json" } : { ...common, kind: "group", fields: {} };
      }
      const { left } = below;
      if (Object.keys(properties).length > left.fields) return { ...common, kind: "json" };
      left.fields -= Object.keys(properties).length;
      const names = new Set<unknown>(Array.isArray(found.required) ? found.required : []);
      const fields = Object.entries(properties).map(([key, each]): [string, Field] => [
        key,
        fieldOf(each, { name: key, required: names.has(key), ...below }),
      ]);
      return { ...common, kind: "group", fields: Object.fromEntries(fields) };
    }
    default:
      return { ...common, kind: "json" };
  }
}

/** Whether a field can show a value: otherwise the value is edited as JSON. */
export function fits(field: Field, value: unknown): boolean {
  if (value === undefined || (value === null && !field.required)) return true;
  switch (field.kind) {
    case "string":
      return typeof value === "string";
    case "number":
    case "integer":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return field.options.some((option) => isSame(option, value));
    case "list":
      return Array.isArray(value) && value.every((each) => fits(field.item, each));
    case "group":
      return (
        isObject(value) &&
        Object.entries(value).every(
          ([key, each]) => Object.hasOwn(field.fields, key) && fits(field.fields[key]!, each),
        )
      );
    case "variants":
      return field.variants.some((variant) => fits(variant, value));
    case "json":
      return true;
  }
}

export const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other);
