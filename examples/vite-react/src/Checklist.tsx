import { useEffect, useState, type FormEvent } from "react";
import { z } from "zod";
import { ToolError, useApp, useHostStyles, useRegisterTool, useToolData } from "transom/react";

interface Item {
  text: string;
  done: boolean;
}

interface List {
  name: string;
  items: Item[];
}

z.config({ jitless: true }); // hosts need not allow a View to evaluate code

const newItem = z.object({ text: z.string().trim().min(1).describe("What to remember") });

export function Checklist() {
  const { app, isConnected, error } = useApp({ appInfo: { name: "checklist", version: "1.0.0" } });
  const { output } = useToolData<{ name: string }, List>();
  const [list, setList] = useState<List>({ name: "", items: [] });
  const [notice, setNotice] = useState("");
  useHostStyles();

  useEffect(() => {
    if (output) setList(output);
  }, [output]);

  const open = list.items.filter((item) => !item.done);
  const done = list.items.filter((item) => item.done);

  /** Show other items, and have the server keep them. */
  async function keep(items: Item[]) {
    const { name } = list;
    setList({ name, items });
    const kept = await app?.callServerTool({ name: "keep_list", arguments: { name, items } });
    setNotice(kept?.isError ? "The server did not keep this." : "");
  }

  async function add(text: string) {
    if (list.items.some((item) => item.text === text)) {
      throw new ToolError(`"${text}" is on the list already.`);
    }
    await keep([...list.items, { text, done: false }]);
  }

  const check = (text: string, value: boolean) =>
    keep(list.items.map((item) => (item.text === text ? { text, done: value } : item)));

  // --- what the model can do

  useRegisterTool(
    "get_list",
    { description: "Read the checklist.", annotations: { readOnlyHint: true } },
    () => ({ ...list }),
  );

  useRegisterTool(
    "add_item",
    { description: "Put something on the checklist.", inputSchema: newItem },
    async ({ text }) => {
      await add(text);
      return `Added "${text}".`;
    },
  );

  useRegisterTool(
    "check_item",
    {
      description: "Tick something off the checklist.",
      inputSchema: () => ({
        type: "object",
        properties: { item: { type: "string", enum: open.map(({ text }) => text) } },
        required: ["item"],
      }),
      enabled: open.length > 0,
      reason: "everything is ticked off",
    },
    async ({ item }) => {
      await check(item, true);
      return `${open.length - 1} left.`;
    },
  );

  useRegisterTool(
    "clear_done",
    {
      description: "Take what is ticked off from the checklist.",
      annotations: { destructiveHint: true },
      enabled: done.length > 0,
      reason: "nothing is ticked off",
    },
    async () => {
      await keep(open);
      return `Removed ${done.length}.`;
    },
  );

  // --- what the user sees

  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    const text = String(new FormData(form).get("text")).trim();
    if (!text) return;
    add(text).then(
      () => form.reset(),
      (problem: Error) => setNotice(problem.message),
    );
  }

  if (error) return <p role="alert">{error.message}</p>;
  if (!isConnected) return <p>Connecting…</p>;
  return (
    <main>
      <h1>{list.name || "Checklist"}</h1>
      <ul>
        {list.items.map(({ text, done: ticked }) => (
          <li key={text}>
            <label>
              <input
                type="checkbox"
                checked={ticked}
                onChange={(event) => check(text, event.target.checked)}
              />
              <span>{text}</span>
            </label>
          </li>
        ))}
      </ul>
      <form onSubmit={submit}>
        <input name="text" aria-label="Something to remember" placeholder="Something to remember" />
        <button>Add</button>
      </form>
      <p id="notice" role="status">
        {notice}
      </p>
    </main>
  );
}
