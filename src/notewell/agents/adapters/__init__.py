"""The memory in other people's frameworks, one module each; nothing is imported before it is asked for by name."""
