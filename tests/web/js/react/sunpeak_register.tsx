// A page with the hooks of sunpeak: tools that are registered while the page is shown.
import { AppProvider, useApp, useHostContext, useRegisterTool, useToolData } from "sunpeak";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

function Editor() {
  const app = useApp();
  const register = useRegisterTool();
  const { input } = useToolData<{ label: string }>();
  const theme = useHostContext()?.theme;
  const [text, setText] = useState("Some words.");

  useEffect(() => {
    if (!app) return;
    const handle = register(
      "insert-text",
      { description: "Insert text", inputSchema: z.object({ text: z.string() }) },
      ({ text }: any) => {
        setText((before) => before + text);
        return { content: [{ type: "text", text: "Inserted" }] };
      },
    );
    return () => handle?.remove();
  }, [app, register]);

  return (
    <main data-look={theme}>
      <h1>{input?.label}</h1>
      <p id="text">{text}</p>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(
  <AppProvider
    appInfo={{ name: "DocEditor", version: "1.0.0" }}
    capabilities={{ tools: { listChanged: true } }}
  >
    <Editor />
  </AppProvider>,
);
