/**
 * Holds values to JSON Schema.
 *
 * Enforced: type enum const required properties additionalProperties items prefixItems pattern
 * minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength minItems maxItems anyOf
 * oneOf allOf not, and $ref within the schema. Other keywords are not enforced.
 */
import { entries, hasOwn, isArray, isObject, isString, toJson, type JsonObject } from "./json.js";

type Path = readonly PropertyKey[];

/** What is wrong, and where. */
export type Fault = readonly [path: Path, text: string];

const MAX_LINES = 10;
const MAX_LINE = 200;

/** The keywords of JSON Schema that are enforced, as far as they have to be read as something. */
interface Keywords extends JsonObject {
  type?: string | string[];
  enum?: unknown[];
  pattern?: string;
  prefixItems?: unknown[];
  required?: string[];
  properties?: JsonObject;
  allOf?: unknown[];
  anyOf?: unknown[];
  oneOf?: unknown[];
  $ref?: string;
}

const typeOf = (value: unknown): string => {
  if (Number.isInteger(value)) return "integer";
  if (isArray(value)) return "array";
  return value === null ? "null" : typeof value;
};

type Bounds = Record<string, (size: number, bound: number) => boolean>;

const atLeast = (size: number, bound: number): boolean => size >= bound;
const atMost = (size: number, bound: number): boolean => size <= bound;
const OF_STRINGS: Bounds = { minLength: atLeast, maxLength: atMost };
const OF_ARRAYS: Bounds = { minItems: atLeast, maxItems: atMost };
const OF_NUMBERS: Bounds = {
  minimum: atLeast,
  maximum: atMost,
  exclusiveMinimum: (size, bound) => size > bound,
  exclusiveMaximum: (size, bound) => size < bound,
};

/** The size of a value, and the keywords that bound it. */
function sizeOf(value: unknown): [number, Bounds] {
  if (isString(value)) return [Array.from(value).length, OF_STRINGS];
  if (isArray(value)) return [value.length, OF_ARRAYS];
  return typeof value === "number" ? [value, OF_NUMBERS] : [0, {}];
}

/** What is wrong with a value, one by one. `root` is the whole schema, which `$ref` refers to. */
export function* faultsOf(
  root: JsonObject,
  schema: unknown,
  value: unknown,
  path: Path = [],
): Generator<Fault, void> {
  if (!isObject(schema)) {
    if (!schema) yield [path, "is not allowed"];
    return;
  }
  const words = schema as Keywords;
  const here = (part: unknown): Generator<Fault, void> => faultsOf(root, part, value, path);

  const values = "const" in words ? [words.const] : words.enum;
  const type = typeOf(value);
  const types = [words.type ?? type].flat();
  if (values && !values.map(toJson).includes(toJson(value))) {
    yield [path, `must be one of ${toJson(values)}`];
  } else if (!types.includes(type) && !(type === "integer" && types.includes("number"))) {
    yield [path, `expected ${types.join(" or ")}, got ${type}`];
  }

  if (isString(value) && words.pattern && !new RegExp(words.pattern, "u").test(value)) {
    yield [path, `must match the pattern ${words.pattern}`];
  }
  const [size, bounds] = sizeOf(value);
  for (const [word, isWithin] of entries(bounds)) {
    const bound = words[word] as number | undefined;
    if (bound !== undefined && !isWithin(size, bound)) {
      yield [path, `must have ${word} ${bound}`];
    }
  }

  if (isArray(value)) {
    for (const [index, item] of (value as unknown[]).entries()) {
      const part = words.prefixItems?.[index] ?? words.items ?? true;
      yield* faultsOf(root, part, item, [...path, index]);
    }
  }
  if (isObject(value)) {
    const { required = [], properties = {} } = words;
    const others = words.patternProperties ? true : (words.additionalProperties ?? true);
    for (const name of required) {
      if (!hasOwn(value, name)) yield [[...path, name], "is required"];
    }
    for (const [name, member] of entries(value)) {
      const part = hasOwn(properties, name) ? properties[name] : others;
      if (part || hasOwn(properties, name)) yield* faultsOf(root, part, member, [...path, name]);
      else yield [[...path, name], "is not expected"];
    }
  }

  if (words.$ref) yield* here(partAt(root, words.$ref));
  for (const part of words.allOf ?? []) yield* here(part);
  if ("not" in words && here(words.not).next().done) yield* here(false);
  for (const alternatives of [words.anyOf, words.oneOf]) {
    if (!alternatives) continue;
    const faults = alternatives.map((part) => [...here(part)]).sort((a, b) => a.length - b.length);
    yield* faults[0]!; // the one with the fewest faults was probably meant
    if (alternatives === words.oneOf && faults[1]?.length === 0) {
      yield [path, "fits more than one alternative"];
    }
  }
}

/** The part of a schema that a reference such as `#/$defs/track` means. */
const partAt = (root: JsonObject, reference: string): unknown =>
  reference
    .split("/")
    .slice(1)
    .reduce<unknown>((part, step) => (part as JsonObject)[step], root);

/** The first faults as lines such as `- items[2].id: is required`; no text if there are none. */
export function describe(faults: Iterable<Fault>): string {
  const lines = new Set<string>();
  for (const [path, text] of faults) {
    const place = path
      .map(String)
      .join(".")
      .replace(/\.?\b(\d+)(?=\.|$)/g, "[$1]");
    lines.add(`\n- ${place && `${place}: `}${text.slice(0, MAX_LINE)}`);
    if (lines.size >= MAX_LINES) break;
  }
  return [...lines].join("");
}
