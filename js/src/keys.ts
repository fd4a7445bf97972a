/** Keys, as they are written and as a browser names them. */
import { hasOwn } from "./json.js";

export interface Modifiers {
  ctrlKey?: boolean;
  shiftKey?: boolean;
  altKey?: boolean;
  metaKey?: boolean;
}

const MODIFIERS: Record<string, keyof Modifiers> = {
  control: "ctrlKey",
  ctrl: "ctrlKey",
  shift: "shiftKey",
  alt: "altKey",
  option: "altKey",
  meta: "metaKey",
  command: "metaKey",
};
const KEYS: Record<string, string> = {
  space: " ",
  esc: "Escape",
  return: "Enter",
  del: "Delete",
  up: "ArrowUp",
  down: "ArrowDown",
  left: "ArrowLeft",
  right: "ArrowRight",
};
const CODES: Record<string, number> = {
  Backspace: 8,
  Tab: 9,
  Enter: 13,
  Escape: 27,
  " ": 32,
  PageUp: 33,
  PageDown: 34,
  End: 35,
  Home: 36,
  ArrowLeft: 37,
  ArrowUp: 38,
  ArrowRight: 39,
  ArrowDown: 40,
  Delete: 46,
};
const MAX_CHORD = 60;

/** Whether it is one character, of any plane. */
export const isCharacter = (key: string): boolean => /^.$/su.test(key);

export interface Chord extends Modifiers {
  key: string;
}

/** `Control+A` and the like; undefined for what is no key. */
export function readChord(text: string): Chord | undefined {
  if (text.length > MAX_CHORD) return undefined;
  const parts = text === "+" ? ["+"] : text.split("+").map((part) => part || "+");
  const last = parts.pop()!;
  const written = last.toLowerCase();
  const key = hasOwn(KEYS, written) ? KEYS[written]! : last;
  const isKey = isCharacter(key) || hasOwn(CODES, key) || /^F([1-9]|1[0-2])$/.test(key);
  const chord: Chord = { key };
  for (const part of parts) {
    const name = part.toLowerCase();
    if (!hasOwn(MODIFIERS, name)) return undefined;
    chord[MODIFIERS[name]!] = true;
  }
  return isKey ? chord : undefined;
}

/** Where a key is on a keyboard. */
export const codeOf = (key: string): string => {
  if (key === " ") return "Space";
  if (/^[a-z]$/i.test(key)) return `Key${key.toUpperCase()}`;
  return /^\d$/.test(key) ? `Digit${key}` : key;
};

/** The old number of a key, which some pages still ask for. */
export const keyCodeOf = (key: string): number => CODES[key] ?? key.toUpperCase().charCodeAt(0);
