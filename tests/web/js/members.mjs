// Prints what the modules really have, as JSON, for a test that holds the declarations to it.
const folder = process.argv[2];
globalThis.document = { forms: [] };
globalThis.MutationObserver = class { observe() {} };
globalThis.addEventListener = () => {};
Object.defineProperty(globalThis, "navigator", { value: {}, configurable: true });

const load = (name) => import(`${folder}/${name}`);
const transom = await load("transom.js");
const app = new transom.App({ name: "a", version: "1" });
const tool = app.registerTool("t", {}, () => "");
await load("webmcp.js");
document.modelContext.ontoolchange = undefined; // an EventTarget takes it as it comes
const react = await load("react.js");

const own = (value) => Object.getOwnPropertyNames(value);
const names = (value) => own(value).sort();
const ofClass = (value) => own(Object.getPrototypeOf(value)).filter((name) => name !== "constructor");
console.log(
  JSON.stringify({
    transom: names(transom),
    react: names(react),
    App: [...own(app), ...ofClass(app)].sort(),
    RegisteredAppTool: names(tool),
    ModelContext: names(document.modelContext),
  }),
);
