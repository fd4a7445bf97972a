/** Uses everything that `react.js` declares. Compiled by a test, not run. */
import {
  App,
  AppProvider,
  ToolError,
  useApp,
  useAppTools,
  useAutoResize,
  useDocumentTheme,
  useHostContext,
  useHostFonts,
  useHostStyles,
  useHostStyleVariables,
  useRegisterTool,
  useToolData,
  type RegisteredAppTool,
} from "transom/react";
import { useState } from "react";
import { z } from "zod";

const inputSchema = z.object({ text: z.string() });

export function Editor() {
  const { app, isConnected, error } = useApp({
    appInfo: { name: "editor", version: "1.0.0" },
    capabilities: { tools: { listChanged: true } },
    autoResize: false,
    onAppCreated: (created: App) => {
      created.ontoolresult = ({ content }) => content.length;
    },
  });
  const [text, setText] = useState("");
  useRegisterTool("insert", { inputSchema, enabled: isConnected }, (given) => {
    if (!given.text) throw new ToolError("Nothing to insert.");
    setText(given.text.trim());
  });
  useRegisterTool("read", { annotations: { readOnlyHint: true } }, () => text);
  // @ts-expect-error: text is text
  useRegisterTool("wrong", { inputSchema }, (given) => given.text.toFixed());
  useHostStyles(app, app?.getHostContext());
  useHostStyleVariables(app);
  useHostFonts();
  useAutoResize(app);
  const dark = useDocumentTheme() === "dark";
  if (error) return <p>{error.message}</p>;
  return <p className={dark ? "dark" : undefined}>{text}</p>;
}

function Inner() {
  const app: App | null = useApp();
  const register = useRegisterTool();
  const handle: RegisteredAppTool = register("now", { inputSchema }, ({ text }) => text);
  const { input, output, isLoading } = useToolData<{ q: string }, { count: number }>();
  const locale: string | undefined = useHostContext()?.locale;
  useAppTools({
    tools: [{ name: "get-selection", description: "Get the selection" }],
    onCallTool: async ({ name, arguments: given }, { signal }) => {
      signal.throwIfAborted();
      return { content: [{ type: "text", text: `${name} ${given.text}` }] };
    },
  });
  return (
    <button onClick={() => app?.callServerTool({ name: "refresh" })}>
      {[input?.q, output?.count.toFixed(), isLoading, locale, handle.name].join(" ")}
    </button>
  );
}

export const Page = () => (
  <AppProvider appInfo={{ name: "editor", version: "1.0.0" }}>
    <Inner />
  </AppProvider>
);
