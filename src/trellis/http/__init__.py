"""The parts of HTTP that the REST API, MCP and the panel share: routes, requests, responses, limits and problem documents."""
