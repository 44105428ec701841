"""What agents are given: tools, prompts, client set-up and framework adapters."""
