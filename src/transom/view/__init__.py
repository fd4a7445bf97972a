"""The View's side: `App`, and the tools inside it."""
