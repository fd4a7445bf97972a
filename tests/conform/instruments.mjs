/**
 * Runs instruments of `transom conform host` without a browser: each in a context of its own, with
 * a stand-in for a window whose parent is the host. Lines of JSON on stdin and stdout:
 *
 *   {view, html}     open an instrument
 *   {view, message}  a message to it, or from it
 *   {view}           close it
 */
import { createInterface } from "node:readline";

import { openInstrument } from "./instrument_window.mjs";

const views = new Map();
const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { view, html, message } = JSON.parse(line);
  if (html !== undefined)
    views.set(view, openInstrument(html, (sent) => write({ view, message: sent })));
  else if (message !== undefined) views.get(view)?.message(message);
  else {
    views.get(view)?.close();
    views.delete(view);
  }
});
