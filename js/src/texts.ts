/** Texts of a page, as a model reads them. */

/** Characters of a text that are looked at. */
export const MAX_RAW = 2000;
const MAX_UNSEEN = 10; // letters of a name that may be for screen readers alone

/** A text on one line, and not longer than that. */
export function shorten(text: string, limit: number): string {
  const line = text
    .slice(0, MAX_RAW)
    .replace(/[\s\u{e000}-\u{f8ff}\u{200b}-\u{200f}\u{feff}]+/gu, " ") // icons of fonts, too
    .trim();
  return line.length > limit ? `${line.slice(0, limit - 1).trimEnd()}…` : line;
}

const lettersOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "");

/** Whether a name says something else than the text that can be seen, or much more than that. */
export function contradict(name: string, text: string): boolean {
  const [a, b] = [lettersOf(name), lettersOf(text)];
  if (a === "" || b === "" || b.includes(a)) return false;
  return !a.includes(b) || a.length - b.length > MAX_UNSEEN;
}
