"""The `transom` command: parsing only, each command in a module of its own."""
