/** What can be passed on of what a View posts. */

const MAX_MESSAGE = 16 * 1024 * 1024; // bytes, as the host takes

/** Its JSON; undefined for what has none: a cycle, or something nested too deep. */
function toJson(data: unknown): string | undefined {
  try {
    return JSON.stringify(data);
  } catch {
    return undefined;
  }
}

/** A character takes up to three bytes; only what could be too large is measured. */
const isTooLarge = (text: string): boolean =>
  text.length * 3 > MAX_MESSAGE &&
  (text.length > MAX_MESSAGE || new Blob([text]).size > MAX_MESSAGE);

/** The text of a message, or why it cannot be passed on. */
export function asMessage(data: unknown): { text: string; why: string } {
  const text = toJson(data);
  if (text === undefined) return { text: "", why: "is not JSON" };
  return { text, why: isTooLarge(text) ? `is larger than ${MAX_MESSAGE} bytes` : "" };
}
