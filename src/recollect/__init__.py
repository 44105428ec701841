"""Long-term memory for AI agents, kept in plain Markdown."""
