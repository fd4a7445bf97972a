/** What `transom.server` adds for a page that uses zod. */
import { App } from "./transom.js";
import { zodToJsonSchema } from "./zod.js";

App.hooks._zodToJsonSchema = zodToJsonSchema;
