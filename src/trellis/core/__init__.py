"""The rules: operations, keys and grants, kinds and trees. No HTTP, no HTML and no SQL in here."""
