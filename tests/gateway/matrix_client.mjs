// The official client for TypeScript, as the gateway's matrix needs it: orders as JSON lines on stdin,
// answers on stdout. `matrix_client.mjs legacy|auto URL` or `matrix_client.mjs legacy|auto COMMAND...`.
// The first line that it writes is the version of the protocol.
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, target, ...args] = process.argv.slice(2);
const client = new Client(
  { name: "typescript", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
);
client.setRequestHandler("elicitation/create", async () => ({
  action: "accept",
  content: { name: "Ada", value: "Ada" },
}));
const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
await client.connect(transport);
say({ version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null });

const running = new Map();
const orders = {
  tools: async () => (await client.listTools()).tools.map((tool) => tool.name),
  call: async ({ name, arguments: given, progress }, id) => {
    const stop = new AbortController();
    running.set(id, stop);
    const onprogress = progress ? () => say({ id, progress: true }) : undefined;
    const result = await client.callTool(
      { name, arguments: given },
      { onprogress, signal: stop.signal, cacheMode: "bypass" },
    );
    const texts = result.content.filter((block) => block.type === "text");
    return [texts.map((block) => block.text).join("\n"), result.isError === true];
  },
  cancel: async ({ which }) => running.get(which).abort("enough"),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { id, order, ...given } = JSON.parse(line);
  orders[order](given, id).then(
    (value) => say({ id, value: value ?? null }),
    (error) => say({ id, error: String(error?.message ?? error) }),
  );
}
await client.close();
