// node orders_server.mjs PAGE.html: the document's server, with the official SDK.
import { readFile } from "node:fs/promises";
import {
  registerAppResource,
  registerAppTool,
  RESOURCE_MIME_TYPE,
} from "@modelcontextprotocol/ext-apps/server";
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const server = new McpServer({ name: "orders", version: "1.0.0" });
const uri = "ui://samples/page.html";
const searchOrders = async (query) => ({ orders: { ada: ["o1", "o2"], bob: ["o3"] }[query] ?? [] });

registerAppResource(server, "Orders", uri, {}, async () => ({
  contents: [{ uri, mimeType: RESOURCE_MIME_TYPE, text: await readFile(process.argv[2], "utf8") }],
}));

registerAppTool(
  server,
  "open_sample",
  { description: "Show orders.", _meta: { ui: { resourceUri: uri } } },
  async () => ({ content: [{ type: "text", text: "open" }] }),
);

server.registerTool(
  "count-orders",
  { description: "Count orders." },
  async () => ({ content: [{ type: "text", text: "3" }], structuredContent: { result: 3 } }),
);

registerAppTool(
  server,
  "refresh-orders",
  {
    description: "Refresh order data for the app UI.",
    inputSchema: { query: z.string() },
    _meta: {
      ui: {
        visibility: ["app"],
      },
    },
  },
  async ({ query }) => {
    const result = await searchOrders(query);
    return {
      content: [{ type: "text", text: JSON.stringify(result) }],
      structuredContent: result,
    };
  },
);

await server.connect(new StdioServerTransport());
