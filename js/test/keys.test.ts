import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOf, keyCodeOf, readChord } from "../src/keys.js";

test("keys and chords are read as they are written", () => {
  assert.deepEqual(readChord("Enter"), { key: "Enter" });
  assert.deepEqual(readChord("a"), { key: "a" });
  assert.deepEqual(readChord("é"), { key: "é" });
  assert.deepEqual(readChord("😀"), { key: "😀" });
  assert.deepEqual(readChord("Control+A"), { ctrlKey: true, key: "A" });
  assert.deepEqual(readChord("ctrl+shift+Tab"), { ctrlKey: true, shiftKey: true, key: "Tab" });
  assert.deepEqual(readChord("Meta+Space"), { metaKey: true, key: " " });
  assert.deepEqual(readChord("+"), { key: "+" });
  assert.deepEqual(readChord("Esc"), { key: "Escape" });
  assert.deepEqual(readChord("F12"), { key: "F12" });
});

test("what is no key is none", () => {
  for (const text of [
    "ab",
    "Hyper+A",
    "Control+AB",
    "F13",
    "toString",
    "constructor+A",
    "x".repeat(100),
  ]) {
    assert.equal(readChord(text), undefined, text);
  }
});

test("a browser's names of keys", () => {
  assert.equal(codeOf("a"), "KeyA");
  assert.equal(codeOf("7"), "Digit7");
  assert.equal(codeOf(" "), "Space");
  assert.equal(codeOf("Enter"), "Enter");
  assert.equal(keyCodeOf("Enter"), 13);
  assert.equal(keyCodeOf("a"), 65);
});
