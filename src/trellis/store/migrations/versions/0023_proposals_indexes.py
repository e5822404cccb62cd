"""Adds indexes with which proposals are listed, counted and purged without reading their rows, which may be large."""

from alembic import op

from trellis.store.migrations.effect import Effect

revision = "0023"
down_revision = "0022"
effect = Effect(blocks=("proposals",))


def upgrade() -> None:
    """Make the indexes; that of actors gets what its counts need, and need not have the id, which each row of an index has."""
    op.drop_index("proposals_by_actor", "proposals")
    op.create_index("proposals_by_actor", "proposals", ["actor_type", "actor_id", "state", "expires_at", "size"])
    op.create_index("proposals_by_operation", "proposals", ["operation", "state", "expires_at"])
    op.create_index("proposals_by_closing", "proposals", ["closed_at"])
