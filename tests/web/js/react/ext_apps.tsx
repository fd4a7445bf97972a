// A page with the hooks of @modelcontextprotocol/ext-apps, as its documentation has them.
import { useApp, useDocumentTheme, useHostStyles } from "@modelcontextprotocol/ext-apps/react";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

function Editor() {
  const [text, setText] = useState("Some words.");
  const [asked, setAsked] = useState("");
  const { app, isConnected, error } = useApp({
    appInfo: { name: "DocEditor", version: "1.0.0" },
    capabilities: { tools: { listChanged: true } },
    onAppCreated: (app) => {
      app.ontoolinput = (input) => setAsked(String(input.arguments?.label));
      app.registerTool(
        "insert-text",
        { description: "Insert text", inputSchema: z.object({ text: z.string() }) },
        ({ text }) => {
          setText((before) => before + text);
          return { content: [{ type: "text", text: "Inserted" }] };
        },
      );
    },
  });
  useHostStyles(app, app?.getHostContext());
  const theme = useDocumentTheme();

  if (error) return <p>Error: {error.message}</p>;
  if (!isConnected) return <p>Connecting...</p>;
  return (
    <main data-look={theme}>
      <h1>{asked}</h1>
      <p id="text">{text}</p>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(<Editor />);
