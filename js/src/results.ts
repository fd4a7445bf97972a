/** Tool results, from what a callback returned. */
import { copy, hasOwn, isArray, isObject, isString, toJson, type JsonObject } from "./json.js";
import type { ToolSchema } from "./schema.js";
import type { CallToolResult, ContentBlock } from "./types.js";

/** What a content block of each type must have. */
const BLOCK_MEMBERS: Record<string, string> = {
  text: "text",
  image: "data",
  audio: "data",
  resource: "resource",
  resource_link: "uri",
};

const isBlock = (value: unknown): boolean =>
  isObject(value) &&
  hasOwn(BLOCK_MEMBERS, value.type as string) &&
  hasOwn(value, BLOCK_MEMBERS[value.type as string]!);

export const asBlock = (value: unknown): ContentBlock =>
  isBlock(value)
    ? (value as ContentBlock)
    : { type: "text", text: isString(value) ? value : toJson(value)! };

/** Tell a result from data that happens to have a key named `content`. */
const isResult = (value: unknown): value is CallToolResult =>
  isObject(value) &&
  (isArray(value.content)
    ? value.content.every(isBlock)
    : "structuredContent" in value || "isError" in value);

/** Whether a value is what a model reads: text, a block, or a list of blocks. */
const isContent = (value: unknown): boolean =>
  isArray(value) ? value.length > 0 && value.every(isBlock) : isString(value) || isBlock(value);

function asResult(given: unknown, output: ToolSchema | undefined): CallToolResult {
  if (isResult(given) && !output?._json.properties.content) return given;
  if (!output && isContent(given)) return { content: [given].flat().map(asBlock) };
  const wrapped = output ? output._wrapped : !isObject(given);
  return {
    content: [asBlock(given)],
    structuredContent: (wrapped ? { result: given } : given) as JsonObject,
  };
}

/** Make a tool result of whatever a callback returned, held to its output schema. It is a copy. */
export async function toResult(value: unknown, output?: ToolSchema): Promise<CallToolResult> {
  const result = asResult(copy(value ?? (output ? null : "Done.")), output);
  if (output && !result.isError) {
    const checked = await output._parse(result.structuredContent, "Invalid output:");
    // Of a schema that could not be converted nobody knew that it is for something else.
    result.structuredContent = isObject(checked) ? checked : { result: checked };
  }
  if (!result.content?.length) {
    result.content = [result.structuredContent ?? []].flat().map(asBlock);
  }
  return result;
}
