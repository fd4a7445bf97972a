/** Schemas of tools: JSON Schema, or a Standard Schema that can be said as JSON Schema. */
import { must } from "./errors.js";
import { hooks } from "./hooks.js";
import { copy, entries, fromEntries, isObject, keys, type JsonObject } from "./json.js";
import { describe, faultsOf, type Fault } from "./json_schema.js";
import type { StandardSchemaV1 } from "./standard_schema.js";
import type { ToJsonSchema } from "./types.js";

/** What the author of a tool may give beside a Standard Schema. */
export interface SchemaHelp {
  jsonSchema?: JsonObject | undefined;
  toJSONSchema?: ToJsonSchema | undefined;
}

type Side = "input" | "output";

/** A Standard Schema, with the ways in which libraries say their JSON Schema. */
interface Convertible extends StandardSchemaV1 {
  readonly "~standard": StandardSchemaV1["~standard"] & {
    readonly jsonSchema?: Record<Side, (options: object) => unknown>;
  };
  readonly toJSONSchema?: (options: object) => unknown;
  readonly toJsonSchema?: (options: object) => unknown;
}

const isStandard = (source: unknown): source is Convertible =>
  Boolean((source as Partial<Convertible>)["~standard"]);

/** Whether a schema is to be made anew at every listing and every call. */
export const isLazy = (source: unknown): source is () => unknown =>
  typeof source === "function" && !isStandard(source);

/**
 * The JSON Schema of a Standard Schema (zod, Valibot, ArkType, ...): what the author gave beside it,
 * else what it says of itself, else what the App's `converter` or ours for zod makes of it.
 */
function convert(
  source: Convertible,
  io: Side,
  help: SchemaHelp,
  converter: ToJsonSchema | undefined,
): unknown {
  const { vendor, jsonSchema: own } = source["~standard"];
  const options = {
    target: "draft-2020-12",
    io, // zod reads this, Valibot the next
    typeMode: io,
    libraryOptions: { unrepresentable: "any" }, // zod: what has no JSON Schema is left open
  } as const;
  const json =
    (io === "input" && help.jsonSchema) ||
    help.toJSONSchema?.(source, options) ||
    own?.[io](options) ||
    source.toJSONSchema?.(options) ||
    source.toJsonSchema?.(options) ||
    converter?.(source, options) ||
    (vendor === "zod" && hooks._zodToJsonSchema?.(source, options));
  if (!json && vendor === "zod") hooks._loadZod?.();
  must(
    json,
    `A ${vendor} schema that does not say its JSON Schema, so that models do not see its members: ` +
      "give toJSONSchema (as z.toJSONSchema) or jsonSchema beside it",
  );
  return json;
}

/** Whether a schema accepts only objects, judged by its outermost keywords. */
function describesObject(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  if (schema.type) return [schema.type].flat().every((type) => type === "object");
  if (schema.properties ?? schema.required) return true;
  const parts = (schema.allOf ?? schema.oneOf ?? schema.anyOf) as unknown[] | undefined;
  return parts?.every(describesObject) ?? false;
}

/** A schema that values can be held to. */
export interface ToolSchema {
  /** Its JSON Schema, which describes an object. */
  readonly _json: JsonObject & { properties: JsonObject };
  /** Why that says nothing: a Standard Schema that cannot be converted. It still holds values to itself. */
  readonly _fault: unknown;
  /** Whether it describes something else, which is sent as `{ result: value }`. */
  readonly _wrapped: boolean;
  /**
   * The value, with defaults, or as the Standard Schema makes it.
   *
   * Throws an error of `Kind` whose text is `title` and what is wrong.
   */
  readonly _parse: (
    value: unknown,
    title: string,
    Kind?: new (text: string) => Error,
  ) => Promise<JsonObject>;
}

/** `help` is what the author gave beside the schema, `converter` what the App has for all. */
export function makeSchema(
  source: unknown,
  side: Side,
  help: SchemaHelp = {},
  converter?: ToJsonSchema,
): ToolSchema {
  const isOutput = side === "output";
  const standard = isStandard(source) && source["~standard"];
  must(standard || isOutput || !help.jsonSchema, "jsonSchema goes with a Standard Schema");
  let given = source;
  let fault: unknown;
  if (standard) {
    try {
      given = convert(source, side, help, converter);
    } catch (error) {
      given = {};
      fault = error;
    }
  }
  must(isObject(given) && !given.then, "A schema is an object");
  const inner = copy(given);
  const wrapped = !describesObject(inner) && keys(inner).length > 0;
  must(!wrapped || isOutput, "An inputSchema describes an object");
  const json: ToolSchema["_json"] = {
    type: "object",
    ...(wrapped
      ? { properties: { result: inner }, required: ["result"], $defs: inner.$defs }
      : { properties: {}, ...inner }),
  };
  return {
    _json: json,
    _fault: fault,
    _wrapped: wrapped,
    async _parse(value, title, Kind = Error) {
      let faults: Iterable<Fault>;
      if (standard) {
        const checked = await standard.validate(wrapped ? (value as JsonObject).result : value);
        if (!checked.issues) {
          return (wrapped ? { result: checked.value } : checked.value) as JsonObject;
        }
        faults = checked.issues.map(({ path = [], message }) => [
          path.map((step) => (typeof step === "object" ? step.key : step)),
          message,
        ]);
      } else faults = faultsOf(json, json, value);
      const text = describe(faults);
      if (text) throw new Kind(title + text);
      const defaults = entries(json.properties).map(
        ([name, part]) => [name, (part as JsonObject).default] as const,
      );
      return { ...copy(fromEntries(defaults)), ...(value as JsonObject) };
    },
  };
}
