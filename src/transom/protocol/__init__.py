"""The conversation between a View and its host, without I/O, tasks or a clock."""
