/** The rows and pages of what a host lists. */
import { ErrorCode, must } from "./errors.js";
import { asText, isObject, isString, type JsonObject } from "./json.js";
import type { RegisteredAppTool, Tool } from "./types.js";

const PAGE_SIZE = 100;
const MAX_DISABLED = 100;
const MAX_REASON = 500;

/** One page of rows, and where the next begins; `cursor` is where this one does. */
export function pageOf<Row>(rows: Row[], cursor: unknown = "0"): [Row[], string | undefined] {
  must(/^\d+$/.test(String(cursor)), "Invalid cursor", ErrorCode.InvalidParams);
  const start = Number(cursor);
  const end = start + PAGE_SIZE;
  return [rows.slice(start, end), end < rows.length ? String(end) : undefined];
}

/** A tool as a page lists it: a bare name is a tool that takes any object. Undefined if it is none. */
export function asRow(given: unknown): Tool | undefined {
  const { inputSchema = { type: "object" }, ...row } = (
    isString(given) ? { name: given } : Object(given)
  ) as JsonObject;
  const valid = isString(row.name) && isObject(inputSchema) && inputSchema.type === "object";
  return valid ? ({ ...row, inputSchema } as unknown as Tool) : undefined;
}

/** Which tools are not listed and why, for the host and its user: models do not see this. */
export function describeUnlisted(registered: readonly RegisteredAppTool[]): JsonObject | undefined {
  const disabled = registered.filter(({ enabled }) => !enabled).slice(0, MAX_DISABLED);
  // One that is left out because its schema throws may be there at the next listing.
  const failing = registered.some(({ error }) => error);
  if (disabled.length === 0 && !failing) return undefined;
  return {
    "transom/lazy": failing,
    "transom/disabled": disabled.map(({ name, reason, registration }) => ({
      name,
      reason: reason && asText(reason).slice(0, MAX_REASON),
      registration,
    })),
  };
}
