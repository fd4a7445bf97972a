// A page with the hooks of sunpeak: a fixed list of tools.
import { AppProvider, useAppTools, useHostContext, useToolData } from "sunpeak";
import { useState } from "react";
import { createRoot } from "react-dom/client";

function Editor() {
  const { input } = useToolData<{ label: string }>();
  const theme = useHostContext()?.theme;
  const [text, setText] = useState("Some words.");

  useAppTools({
    tools: [
      {
        name: "insert-text",
        description: "Insert text",
        inputSchema: { properties: { text: { type: "string" } }, required: ["text"] },
      },
    ],
    onCallTool: async ({ name, arguments: args }) => {
      if (name !== "insert-text") return { content: [], isError: true };
      setText((before) => before + args!.text);
      return { content: [{ type: "text", text: "Inserted" }] };
    },
  });

  return (
    <main data-look={theme}>
      <h1>{input?.label}</h1>
      <p id="text">{text}</p>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(
  <AppProvider appInfo={{ name: "DocEditor", version: "1.0.0" }} capabilities={{ tools: {} }}>
    <Editor />
  </AppProvider>,
);
