"""Adds to each event the trace of the request that caused it."""

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import PLAIN
from trellis.store.migrations.effect import Effect

revision = "0025"
down_revision = "0023"
effect = Effect(blocks=("events",), unknown="traces of events")


def upgrade() -> None:
    """Add the column."""
    op.add_column("events", sa.Column("traceparent", PLAIN))
