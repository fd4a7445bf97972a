navigator.modelContext.registerTool({
  name: "play_track",
  description: "Play a track from the user's library.",
  inputSchema: () => ({
    type: "object",
    properties: { id: { type: "string", enum: library.trackIds() } },
    required: ["id"],
  }),
  async execute({ id }) { player.play(id); /* ... */ },
});

navigator.modelContext.registerTool({
  name: "remove_from_queue",
  description: "Remove a track from the playback queue.",
  disabled: true, // queue empty at boot
  inputSchema: { /* static */ },
  execute: async ({ position }) => { /* ... */ },
});

queue.on("change", (q) => {
  navigator.modelContext.updateTool("remove_from_queue", { disabled: q.length === 0 });
});
