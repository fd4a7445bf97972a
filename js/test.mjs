/** Runs the tests in `js/test` with Node: what needs no page. Arguments go to `node --test`. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const tests = fileURLToPath(new URL("test", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "transom-test-"));
try {
  const names = readdirSync(tests).filter((name) => name.endsWith(".test.ts"));
  await build({
    entryPoints: names.map((name) => join(tests, name)),
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    logLevel: "error",
  });
  const files = readdirSync(folder).map((name) => join(folder, name));
  const options = ["--enable-source-maps", "--test", ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true });
}
