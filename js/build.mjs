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
import { build, transform } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = join(root, "js/src");
const target = join(root, "src/transom/web/static");
const tsc = join(root, "node_modules/typescript-7/bin/tsc");

/** Modules that bundlers import. */
const PACKAGE = { transom: "transom", webmcp: "webmcp_bundle", react: "react" };
/** What these load. */
const LOADED = { zod: "zod" };
/** Modules of pages that show Views; bundlers import `views` as well, as `transom/elements`. */
const SHOWING = {
  views: "views_bundle",
  stage: "stage",
  elements: "elements_script",
  dev: "dev/main",
};
/** Classic scripts: what goes into a page, what follows in some pages, and what the frames around a View
 * load. */
const SCRIPTS = {
  inline: "inline",
  "inline-webmcp": "inline-webmcp",
  "inline-forms": "inline-forms",
  "inline-zod": "inline-zod",
  guard: "guard",
  sandbox: "sandbox",
};
/** A classic script that the sandbox loads when it is needed; it has others' code in it. */
const DRIVING = { drive: "drive" };
const NAMES_OF_ELEMENTS = "dom-accessibility-api";

const COMMON = {
  bundle: true,
  minify: true,
  write: false,
  charset: "utf8",
  target: "es2022",
  legalComments: "none",
  // Members that begin with an underscore are for our own modules, and get short names, the same in
  // all files that are built together: they may be used side by side. `_meta` is the protocol's,
  // `_def` and `_zod` are zod's.
  mangleProps: /^_/,
  mangleCache: {},
  reserveProps: /^_(meta|def|zod)$/,
  logLevel: "error",
};
/** Modules that others import as they are built, not as a part of themselves. */
const SHARED = {
  "./transom.js": "./transom.js", // by `webmcp.js` and `react.js`, so that a page has one App
  "./views_bundle.js": "./views.js",
  "./zod.js": "./zod.js", // by `transom.js`, when it needs it
};

/** Stylesheets are bundled as their text. */
const stylesheets = {
  name: "stylesheets",
  setup({ onLoad }) {
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(readFileSync(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

const share = {
  name: "share",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\.?\/(transom|views_bundle|zod)\.js$/ }, ({ path }) => ({
      path: SHARED[path.replace("../", "./")],
      external: true,
    }));
  },
};

/** In a script that follows `inline.js`, `transom.js` is what that one has set. */
const follow = {
  name: "follow",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/transom\.js$/ }, ({ path }) => ({ path, namespace: "follow" }));
    onLoad({ filter: /./, namespace: "follow" }, () => ({
      contents: "export const { App, ToolError } = globalThis.transom;",
    }));
  },
};

const MODULE = {
  format: "esm",
  plugins: [share, stylesheets],
  banner: { js: "// Built from js/src by `make js`." },
};

/** The licence of a package that is part of a script, as its terms want. */
function notice(name) {
  const text = readFileSync(join(root, "node_modules", name, "LICENSE.md"), "utf8");
  return { js: `/*! With ${name}, which has this licence:\n\n${text.trim()}\n*/` };
}

/** `entries` has the source of each file that is built. */
async function bundle(entries, options) {
  const entryPoints = Object.entries(entries).map(([out, name]) => ({
    in: join(sources, `${name}.ts`),
    out,
  }));
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
    for (const name of [...Object.keys(PACKAGE), "elements"]) add(`${name}.d.ts`);
    return found;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * What goes into pages is one line, so that the author's lines keep their numbers. In minified code, a line
 * break is part of a template literal.
 */
const oneLine = ([name, text]) => [
  name,
  name.startsWith("inline") ? text.trimEnd().replaceAll("\n", "\\n") : text,
];

const built = [
  ...(await bundle({ ...PACKAGE, ...LOADED }, { ...MODULE, external: ["react"] })),
  ...(await bundle(SHOWING, MODULE)),
  ...(await bundle(SCRIPTS, { format: "iife", plugins: [follow] })).map(oneLine),
  ...(await bundle(DRIVING, { format: "iife", banner: notice(NAMES_OF_ELEMENTS) })),
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
