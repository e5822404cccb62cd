"""The REST API: reads HTTP requests, runs operations through the gate, and responds with JSON or problem documents."""
