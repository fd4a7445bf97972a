import { App } from "@modelcontextprotocol/ext-apps";

const app = new App(
  { name: "MyApp", version: "1.0.0" },
  { tools: { listChanged: true } },
);

let hasSelection = false;

app.onlisttools = async () => {
  const tools = [
    { name: "format-text", inputSchema: { type: "object" } },
  ];
  if (hasSelection) {
    tools.push({ name: "get-selection", inputSchema: { type: "object" } });
  }
  return { tools };
};

document.addEventListener("selectionchange", () => {
  const newHasSelection = !!window.getSelection()?.toString();
  if (newHasSelection !== hasSelection) {
    hasSelection = newHasSelection;
    // Notify the host to re-query the tool list
    app.sendToolListChanged();
  }
});

await app.connect();
