"""The memory as an MCP server, on stdio and on streamable HTTP."""
