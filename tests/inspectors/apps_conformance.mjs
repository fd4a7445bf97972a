// MCPJam's checks of a server that has MCP Apps: node apps_conformance.mjs URL
import { MCPAppsConformanceTest } from "@mcpjam/sdk";

const { checks } = await new MCPAppsConformanceTest({
  url: process.argv[2],
  timeout: 60_000,
}).run();
console.log(JSON.stringify(checks));
process.exit(0); // it leaves timers behind
