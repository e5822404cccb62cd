"""The service that a good developer would write for the same nineteen operations with FastAPI and SQLAlchemy's async ORM.

It leaves out what would cost it time and was not asked of it: limits per key, the request log, webhooks, undo, dry runs,
idempotency keys and the panel.
"""
