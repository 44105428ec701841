"""Adapters for agent frameworks, one module each; a framework is imported only when its adapter is."""
