import { useEffect, useState, type FormEvent } from "react";
import { ToolError, useApp, useHostStyles, useRegisterTool, useToolData } from "./transom/react.js";

interface Shown {
  items: string[];
}

export function List() {
  const { app, isConnected, error } = useApp({
    appInfo: { name: "my-view", version: "0.1.0", title: "My view" },
  });
  const { output } = useToolData<object, Shown>();
  const [items, setItems] = useState<string[]>([]);
  useHostStyles();

  useEffect(() => {
    if (output) setItems(output.items);
  }, [output]);

  async function add(text: string) {
    if (items.includes(text)) throw new ToolError(`${text} is on the list already.`);
    const longer = [...items, text];
    const kept = await app?.callServerTool({ name: "keep_list", arguments: { items: longer } });
    if (kept?.isError) throw new ToolError("The server did not keep this.");
    setItems(longer);
    return longer.length;
  }

  // What the model can do.
  useRegisterTool(
    "get_list",
    { description: "Read the list.", annotations: { readOnlyHint: true } },
    () => ({ items }),
  );
  useRegisterTool(
    "add_item",
    {
      description: "Put something on the list.",
      inputSchema: {
        type: "object",
        properties: { text: { type: "string", minLength: 1 } },
        required: ["text"],
      },
    },
    async ({ text }) => `${await add(text)} things are on the list.`,
  );

  // What the user can do.
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const field = form.elements.namedItem("text") as HTMLInputElement;
    add(field.value.trim()).then(
      () => form.reset(),
      (problem: Error) => {
        field.setCustomValidity(problem.message);
        field.reportValidity();
      },
    );
  }

  if (error) return <p role="alert">{error.message}</p>;
  if (!isConnected) return <p>Connecting…</p>;
  return (
    <main>
      <h1>My view</h1>
      <ul>
        {items.map((text) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <input
          name="text"
          aria-label="Something for the list"
          required
          onChange={({ currentTarget }) => currentTarget.setCustomValidity("")}
        />
        <button>Add</button>
      </form>
    </main>
  );
}
