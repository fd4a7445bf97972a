import { App } from "@modelcontextprotocol/ext-apps";

const app = new App(
  { name: "MyApp", version: "1.0.0" },
  { tools: { listChanged: true } },
);

app.onlisttools = async () => {
  return {
    tools: [
      { name: "get-selection", inputSchema: { type: "object" } },
      { name: "format-text", inputSchema: { type: "object" } },
    ],
  };
};

app.oncalltool = async (params) => {
  switch (params.name) {
    case "get-selection":
      return { content: [{ type: "text", text: getSelectedText() }] };
    case "format-text":
      return { content: [{ type: "text", text: formatText(params.arguments) }] };
    default:
      throw new Error(`Unknown tool: ${params.name}`);
  }
};

await app.connect();
