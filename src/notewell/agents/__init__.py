"""What agents are given: tools, prompts, hooks, client set-up and framework adapters."""
