/**
 * Builds what pages carry, load and import, from `js/src` into `src/transom/web/static`, where the
 * built files are committed: an installation of Transom needs no Node.
 *
 *   node js/build.mjs            writes them
 *   node js/build.mjs --check    says which are stale, and fails if one is
 */
import { readFile, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "js/src");
const target = join(root, "src/transom/web/static");

const COMMON = {
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  loader: { ".css": "text" },
  banner: { js: "// Built from js/src by `make js`." },
  logLevel: "error",
};

/** Modules: of the package, and of the pages that the server serves. */
const MODULES = ["transom", "webmcp", "react", "stage", "elements"];
/** Classic scripts: what goes into a page, and what a sandbox loads. */
const SCRIPTS = ["inline", "inline-webmcp", "sandbox"];

/** The modules of the package import each other, so that a page has one App. */
const together = {
  name: "together",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/transom\.js$/ }, ({ path, importer }) =>
      ["webmcp.js", "react.js"].includes(basename(importer)) ? { path, external: true } : undefined,
    );
  },
};

async function bundle(names, options) {
  const entryPoints = names.map((name) => join(sources, `${name}.js`));
  const { outputFiles } = await build({ ...COMMON, ...options, entryPoints, outdir: target });
  return outputFiles;
}

const built = [
  ...(await bundle(MODULES, { format: "esm", external: ["react"], plugins: [together] })),
  ...(await bundle(SCRIPTS, { format: "iife" })),
];

if (process.argv.includes("--check")) {
  for (const { path, text } of built) {
    if ((await readFile(path, "utf8").catch(() => "")) === text) continue;
    console.log(`${relative(root, path)} is stale: run make js`);
    process.exitCode = 1;
  }
} else {
  for (const { path, contents } of built) await writeFile(path, contents);
}
