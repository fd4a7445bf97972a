"""One View: its Bridge, its page, its tools and calls, and what it asks of its host."""
