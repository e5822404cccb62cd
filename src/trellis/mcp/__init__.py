"""MCP, the tools for agents: one tool for each operation that a key is granted, and a few resources, at one endpoint."""
