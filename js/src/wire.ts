/** The messages between a View and its host: JSON-RPC 2.0, posted between windows. */
import { must } from "./errors.js";
import { copy, fromJson, isObject, isString, toJson, type JsonObject } from "./json.js";

export type MessageId = string | number;

/** A message that was received: a request or notification if it has a method, else an answer. */
export interface Message {
  readonly id?: MessageId;
  readonly method?: string;
  readonly params: JsonObject;
  readonly result?: JsonObject;
  readonly error?: JsonObject;
}

const MAX_CHARACTERS = 2 ** 24;

/** Whether a method notifies: `notifications/cancelled`, `ui/notifications/tool-input`. */
export const isNotification = (method: string): boolean =>
  method.split("/").includes("notifications");

/** Whether posted data claims to be JSON-RPC. Other scripts post messages of their own. */
export const isJsonRpc = (data: unknown): boolean =>
  (data as { jsonrpc?: unknown } | null | undefined)?.jsonrpc === "2.0";

/** Read a message. Throws if it is none, or too large. */
export function readMessage(data: unknown): Message {
  const text = toJson(data)!;
  must(text.length <= MAX_CHARACTERS, "Invalid message");
  const message = { params: {}, ...(fromJson(text) as JsonObject) };
  const { id, method, params, result, error } = message as JsonObject;
  const silent = id === undefined;
  must(
    isObject(params) &&
      (method
        ? isString(method) && isNotification(method) === silent
        : isObject(result ?? error)) &&
      (silent || isString(id) || Number.isSafeInteger(id)),
    "Invalid message",
  );
  return message;
}

/** Post a message. It is a copy: what JSON cannot say stays in the page. */
export function postMessage(to: Window, message: JsonObject): void {
  to.postMessage(copy({ jsonrpc: "2.0", ...message }), "*");
}
