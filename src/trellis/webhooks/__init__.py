"""The outgoing door: what has happened is sent to the endpoints that want to know."""
