/**
 * The JSON Schema of zod's schemas, from their definitions: for zod 3.25, 4.0 and 4.1, which do not
 * say it themselves. A page has this module only if it uses such a schema.
 *
 * A definition has nearly the same members in version 3 (`_def`) and version 4 (`_zod.def`). What
 * JSON Schema cannot say is left open: zod checks it at the call.
 */
import { entries, fromEntries, isArray, keys, type JsonObject } from "./json.js";
import type { ToJsonSchema } from "./types.js";

/** What is read of a definition, of either version. */
interface Definition {
  type?: unknown; // its kind in version 4; what an array, a promise or a brand holds in version 3
  typeName?: string; // its kind in version 3, such as `ZodString`
  checks?: Check[];
  shape?: Record<string, ZodSchema> | (() => Record<string, ZodSchema>);
  catchall?: ZodSchema;
  unknownKeys?: string;
  element?: ZodSchema;
  innerType?: ZodSchema;
  schema?: ZodSchema;
  effect?: { type: string };
  in?: ZodSchema;
  out?: ZodSchema;
  left?: ZodSchema;
  right?: ZodSchema;
  keyType?: ZodSchema;
  valueType?: ZodSchema;
  options?: ZodSchema[];
  items?: ZodSchema[];
  rest?: ZodSchema | null;
  entries?: JsonObject;
  values?: unknown[] | JsonObject;
  value?: unknown;
  defaultValue?: unknown; // a function in version 3
  getter?: () => ZodSchema;
  minLength?: Bound;
  maxLength?: Bound;
  exactLength?: Bound;
}
type Bound = { value: number } | null;

/** A check of version 3. */
interface Check {
  kind: string;
  value?: number;
  inclusive?: boolean;
  regex?: RegExp;
}

interface ZodSchema {
  _def?: Definition;
  _zod?: {
    def: Definition;
    bag: Bag;
    optin?: string;
    optout?: string;
    pattern?: RegExp;
    toJSONSchema?: () => JsonObject;
  };
  description?: string;
  isOptional: () => boolean;
  meta?: () => JsonObject | undefined;
}

/** What version 4 has collected of the checks of a schema. */
interface Bag {
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  format?: string;
  patterns?: Set<RegExp>;
}

const isFunction = (value: unknown): value is () => unknown => typeof value === "function";

/** Formats that JSON Schema has under another name. */
const FORMATS: Record<string, string> = { guid: "uuid", url: "uri", datetime: "date-time" };
const SAME_FORMATS = ["email", "uuid", "date", "time", "duration", "ipv4", "ipv6"];

const formatOf = (name = ""): string | undefined =>
  FORMATS[name] ?? SAME_FORMATS.find((format) => format === name);

/** The checks of a schema of version 3 as version 4 has them. */
function bagOf({ checks = [], ...def }: Definition): Bag {
  const bag: Bag = {
    ...(def.minLength && { minimum: def.minLength.value }),
    ...(def.maxLength && { maximum: def.maxLength.value }),
    ...(def.exactLength && { minimum: def.exactLength.value, maximum: def.exactLength.value }),
  };
  for (const { kind, value, inclusive = true, regex } of checks) {
    if (kind === "min") bag[inclusive ? "minimum" : "exclusiveMinimum"] = value!;
    else if (kind === "max") bag[inclusive ? "maximum" : "exclusiveMaximum"] = value!;
    else if (kind === "length") bag.minimum = bag.maximum = value!;
    else if (kind === "multipleOf") bag.multipleOf = value!;
    else if (regex) bag.patterns = new Set([...(bag.patterns ?? []), regex]);
    else bag.format ??= kind;
  }
  return bag;
}

function stringSchema({ minimum, maximum, format, patterns }: Bag): JsonObject {
  const [pattern, ...others] = [...(patterns ?? [])].map(({ source }) => ({ pattern: source }));
  return {
    type: "string",
    minLength: minimum,
    maxLength: maximum,
    format: formatOf(format),
    ...(others.length > 0 ? { allOf: [pattern, ...others] } : pattern),
  };
}

/** A bound that was chosen, not the one of all integers. */
const chosen = (bound = NaN): number | undefined =>
  Math.abs(bound) < Number.MAX_SAFE_INTEGER ? bound : undefined;

function numberSchema({ format = "", multipleOf, ...bag }: Bag): JsonObject {
  return {
    type: format.includes("int") ? "integer" : "number",
    minimum: chosen(bag.minimum),
    maximum: chosen(bag.maximum),
    exclusiveMinimum: chosen(bag.exclusiveMinimum),
    exclusiveMaximum: chosen(bag.exclusiveMaximum),
    multipleOf,
  };
}

/** The values of an enum; one of TypeScript with numbers also has the names of its numbers. */
function enumSchema(given: unknown[] | JsonObject): JsonObject {
  if (isArray(given)) return { type: "string", enum: given };
  const values = entries(given)
    .filter(([name]) => typeof given[given[name] as string] !== "number")
    .map(([, value]) => value);
  const [type, ...others] = new Set(values.map((value) => typeof value));
  return { type: others.length > 0 ? undefined : type, enum: values };
}

const literalSchema = (values: unknown[]): JsonObject =>
  values.length === 1 ? { const: values[0] } : { enum: values };

/** Takes `io` alone of the options: whether the schema of what goes in, or comes out, is wanted. */
export const zodToJsonSchema: ToJsonSchema = (root: ZodSchema, { io }) => {
  const isInput = io === "input";
  const open = new Map<ZodSchema, string>(); // those that are being converted, and their names
  const recursive = new Map<string, JsonObject>(); // those that contain themselves, by name
  let count = 0;

  /** Convert a schema; a place of it inside itself is a reference. */
  function convert(schema: ZodSchema): JsonObject {
    const known = open.get(schema);
    if (known) {
      recursive.set(known, {});
      return { $ref: `#/$defs/${known}` };
    }
    count += 1;
    const name = `schema${count}`;
    open.set(schema, name);
    const json = { ...convertKind(schema), ...metaOf(schema) };
    open.delete(schema);
    if (recursive.has(name)) recursive.set(name, json);
    return json;
  }

  function metaOf(schema: ZodSchema): JsonObject {
    const { id, ...meta } = schema.meta?.() ?? {};
    return schema.description ? { description: schema.description, ...meta } : meta;
  }

  const isOptional = (schema: ZodSchema): boolean => {
    if (schema._zod) return Boolean(schema._zod[isInput ? "optin" : "optout"]);
    return schema.isOptional() && (isInput || !/Default|Catch/.test(schema._def!.typeName!));
  };

  function objectSchema({ shape = {}, catchall, unknownKeys }: Definition): JsonObject {
    const members = typeof shape === "function" ? shape() : shape;
    const others = catchall && convert(catchall);
    const isStrict = unknownKeys ? unknownKeys === "strict" : others?.not;
    return {
      type: "object",
      properties: fromEntries(entries(members).map(([name, part]) => [name, convert(part)])),
      required: keys(members).filter((name) => !isOptional(members[name]!)),
      additionalProperties: isStrict ? false : others?.not ? undefined : others,
    };
  }

  function convertKind(schema: ZodSchema): JsonObject {
    const own = schema._zod?.toJSONSchema?.();
    if (own) return own;
    const def = schema._zod?.def ?? schema._def!;
    const bag = schema._zod?.bag ?? bagOf(def);
    const inner = (def.innerType ?? def.schema ?? def.element ?? def.type) as ZodSchema;
    switch (def.typeName?.slice(3).toLowerCase() ?? def.type) {
      case "string":
        return stringSchema(bag);
      case "number":
        return numberSchema(bag);
      case "bigint":
        return { type: "integer" };
      case "boolean":
      case "success":
        return { type: "boolean" };
      case "null":
        return { type: "null" };
      case "never":
        return { not: {} };
      case "date":
        return { type: "string", format: "date-time" };
      case "template_literal":
        return { type: "string", pattern: schema._zod?.pattern?.source };
      case "enum":
      case "nativeenum":
        return enumSchema(def.entries ?? def.values!);
      case "literal":
        return literalSchema((def.values as unknown[] | undefined) ?? [def.value]);
      case "object":
        return objectSchema(def);
      case "record":
        return {
          type: "object",
          propertyNames: convert(def.keyType!),
          additionalProperties: convert(def.valueType!),
        };
      case "array":
        return {
          type: "array",
          items: convert(inner),
          minItems: bag.minimum,
          maxItems: bag.maximum,
        };
      case "tuple":
        return {
          type: "array",
          prefixItems: def.items!.map(convert),
          items: def.rest ? convert(def.rest) : false,
          minItems: def.items!.filter((item) => !isOptional(item)).length,
        };
      case "union":
        return { anyOf: def.options!.map(convert) };
      case "discriminatedunion":
        return { oneOf: def.options!.map(convert) };
      case "intersection":
        return { allOf: [convert(def.left!), convert(def.right!)] };
      case "nullable":
        return { anyOf: [convert(inner), { type: "null" }] };
      case "default":
      case "prefault": {
        const { defaultValue } = def;
        const value = isFunction(defaultValue) ? defaultValue() : defaultValue;
        return { ...convert(inner), default: value };
      }
      case "effects": // transform, preprocess or refine
        return !isInput && def.effect?.type === "transform" ? {} : convert(inner);
      case "pipe":
      case "pipeline": {
        const isPreprocessed = def.in!._zod?.def.type === "transform";
        return convert((isInput && !isPreprocessed ? def.in : def.out)!);
      }
      case "lazy":
        return convert(def.getter!());
      case "optional":
      case "nonoptional":
      case "catch":
      case "readonly":
      case "promise":
      case "branded":
        return convert(inner);
      default:
        return {};
    }
  }

  const json = convert(root);
  return recursive.size > 0 ? { ...json, $defs: fromEntries(recursive) } : json;
};
