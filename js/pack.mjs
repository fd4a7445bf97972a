/**
 * Packs the npm package into `build/npm`, or the folder that is given: what `make js` has built, with `package.json`, the README
 * and the license. Prints the file.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const built = join(root, "src/transom/web/static");
const target = process.argv[2] ?? join(root, "build/npm");
const SCRIPTS = ["transom.js", "webmcp.js", "react.js", "zod.js", "views.js"];

const folder = mkdtempSync(join(tmpdir(), "transom-pack-"));
try {
  for (const name of ["js/package.json", "js/README.md", "LICENSE"]) {
    cpSync(join(root, name), join(folder, name.split("/").at(-1)));
  }
  mkdirSync(join(folder, "dist"));
  for (const name of readdirSync(built)) {
    if (!SCRIPTS.includes(name) && !name.endsWith(".d.ts")) continue;
    cpSync(join(built, name), join(folder, "dist", name));
  }
  mkdirSync(target, { recursive: true });
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", target], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  console.log(join(target, JSON.parse(packed)[0].filename));
} finally {
  rmSync(folder, { recursive: true });
}
