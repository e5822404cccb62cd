"""All SQL of the package, as functions for SQLite and PostgreSQL that take a transaction and return plain values."""
