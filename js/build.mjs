/**
 * Builds what pages carry, load and import, from `js/src` into `src/transom/web/static`, where the
 * built files are committed: an installation of Transom needs no Node.
 *
 *   node js/build.mjs            writes them
 *   node js/build.mjs --check    says which are stale, and fails if one is
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "js/src");
const target = join(root, "src/transom/web/static");
const tsc = join(root, "node_modules/typescript-7/bin/tsc");

/** Modules: those that bundlers import, and those of pages that the server serves. */
const PACKAGE = ["transom", "webmcp", "react"];
const SERVED = ["stage", "elements"];
/** Classic scripts: what goes into a page, and what a sandbox loads. */
const SCRIPTS = ["inline", "inline-webmcp", "sandbox"];

const COMMON = {
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  loader: { ".css": "text" },
  // Members that begin with an underscore are for our own modules, and get short names, the same in
  // all files that are built together: they may be used side by side. `_meta` is the protocol's.
  mangleProps: /^_/,
  mangleCache: {},
  reserveProps: /^_meta$/,
  logLevel: "error",
};
const BANNER = { js: "// Built from js/src by `make js`." };

/** `webmcp.js` and `react.js` import `transom.js`, so that a page has one App. */
const shareTransom = {
  name: "share-transom",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/transom\.js$/ }, ({ path, importer }) =>
      PACKAGE.includes(basename(importer, ".ts")) ? { path, external: true } : undefined,
    );
  },
};

async function bundle(names, options) {
  const entryPoints = names.map((name) => join(sources, `${name}.ts`));
  const { outputFiles } = await build({ ...COMMON, ...options, entryPoints, outdir: target });
  return outputFiles.map(({ path, text }) => [basename(path), text]);
}

/** The declarations of the package: of its modules, and of those that these name. */
function declarations() {
  const folder = mkdtempSync(join(tmpdir(), "transom-types-"));
  try {
    const options = ["--noEmit", "false", "--emitDeclarationOnly", "--rootDir", sources];
    execFileSync(tsc, ["-p", join(root, "js"), ...options, "--outDir", folder], {
      stdio: "inherit",
    });
    const found = new Map();
    const add = (name) => {
      if (found.has(name)) return;
      const text = readFileSync(join(folder, name), "utf8");
      found.set(name, text);
      for (const [, other] of text.matchAll(/from "\.\/(\w+)\.js"/g)) add(`${other}.d.ts`);
    };
    for (const name of PACKAGE) add(`${name}.d.ts`);
    return found;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const built = [
  ...(await bundle(PACKAGE, {
    format: "esm",
    external: ["react"],
    plugins: [shareTransom],
    banner: BANNER,
  })),
  ...(await bundle(SERVED, { format: "esm", banner: BANNER })),
  ...(await bundle(SCRIPTS, { format: "iife" })),
  ...declarations(),
];

for (const [name, text] of built) {
  const file = join(target, name);
  if (existsSync(file) && readFileSync(file, "utf8") === text) continue;
  if (process.argv.includes("--check")) {
    console.log(`${relative(root, file)} is stale: run make js`);
    process.exitCode = 1;
  } else writeFileSync(file, text);
}
