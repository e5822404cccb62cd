"""The API door: HTTP in, operations through the gate, problem documents and JSON out."""
