// A page with the hooks of react.js, in Strict Mode: tools that follow the state of components.
import {
  ToolError,
  useApp,
  useAppTools,
  useHostContext,
  useHostStyles,
  useRegisterTool,
  useToolData,
} from "transom/react";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const set: any = ((globalThis as any).set = {}); // how the test changes the state

function Queue({ tracks }: { tracks: string[] }) {
  const [log, setLog] = useState<string[]>([]);
  useRegisterTool(
    "remove",
    {
      description: `Remove one of ${tracks.length}`,
      inputSchema: () => ({
        type: "object",
        properties: { track: { enum: tracks } },
        required: ["track"],
      }),
      enabled: tracks.length > 0,
      reason: "the queue is empty",
    },
    ({ track }) => {
      setLog([...log, track]);
      return `Removed ${track}, after ${log.length} others.`;
    },
  );
  return <p id="log">{log.join(" ")}</p>;
}

function Selection({ name, selected }: { name: string; selected: string | null }) {
  useAppTools({
    tools: selected === null ? [] : [{ name, description: `Read ${name}` }],
    onCallTool: () => `${name}: ${selected}`,
  });
  return null;
}

function Named({ name, typed }: { name: string; typed: boolean }) {
  const inputSchema = typed ? z.object({ n: z.number() }) : undefined;
  useRegisterTool(name, { inputSchema, title: typed ? "Typed" : undefined }, (given: any) => {
    if (given.n === 13) throw new ToolError("Not that one.");
    return typed ? `number ${given.n}` : `anything ${JSON.stringify(given.arguments)}`;
  });
  return null;
}

function Page() {
  const [state, setState] = useState({
    tracks: ["one"],
    first: "x" as string | null,
    second: null as string | null,
    queue: true,
    name: "named",
    typed: true,
    renders: 0,
  });
  set.state = (changes: object) => setState((before) => ({ ...before, ...changes }));
  const { app, isConnected, error } = useApp({
    appInfo: { name: "own", version: "1" },
    onAppCreated: () => ((globalThis as any).created = ((globalThis as any).created ?? 0) + 1),
  });
  (globalThis as any).state = { app, isConnected, error: error?.message ?? null };
  useHostStyles();
  const { input, output, isLoading } = useToolData();
  return (
    <main data-locale={useHostContext()?.locale} data-loading={isLoading}>
      {state.queue && <Queue tracks={state.tracks} />}
      <Selection name="first" selected={state.first} />
      <Selection name="second" selected={state.second} />
      <Named name={state.name} typed={state.typed} />
      <output>{JSON.stringify([input, output])}</output>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
