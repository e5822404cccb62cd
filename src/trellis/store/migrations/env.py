"""Alembic's entry point: run the steps on the connection that `trellis.store.migrate` holds open."""

from alembic import context

from trellis.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=False,  # migrate.py has begun the transaction and ends it
    on_version_apply=context.config.attributes["on_step"],
)
context.run_migrations()
