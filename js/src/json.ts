/** JSON values, handled with methods that were saved before a page can replace them. */

export type JsonObject = Record<string, unknown>;

const { parse, stringify } = JSON;
export const { entries, fromEntries, hasOwn, keys } = Object;
export const { isArray } = Array;

export const isString = (value: unknown): value is string => typeof value === "string";

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !isArray(value);

/** Its JSON; undefined for what has none, such as a function. */
export const toJson = stringify as (value: unknown) => string | undefined;

export const fromJson = parse as (text: string) => unknown;

/** A copy of what JSON can say of a value. Throws if that is nothing. */
export const copy = <Value>(value: Value): Value => parse(stringify(value)) as Value;

/** A value as text, for people to read. It may be of another window, whose Error is not ours. */
export function asText(value: unknown): string {
  try {
    const isError = Object.prototype.toString.call(value) === "[object DOMException]"; // has no stack
    const isData = typeof value === "object" && value !== null && !("stack" in value) && !isError;
    return String(isData ? stringify(value) : value);
  } catch {
    return typeof value;
  }
}
