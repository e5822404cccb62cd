"""All SQL, and only here: SQLite and PostgreSQL behind functions that take a transaction and return plain values."""
