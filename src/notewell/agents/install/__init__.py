"""Adds the MCP server to the settings of other programs."""
