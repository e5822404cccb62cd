"""Mail that is to be sent, and what has become of it."""

import sqlalchemy as sa

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.tables.metadata import METADATA

# What a mail says is written when it is sent: a link is worth nothing until then, and nobody reads one here.
mails = sa.Table(
    "mails",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("kind", PLAIN, nullable=False),  # alarms, invitation or changed-address
    sa.Column("admin_id", NUMBER, nullable=False),  # whom it is for
    sa.Column("recipient", sa.Text),  # where it goes; none: to the address of that administrator
    sa.Column("first", NUMBER),  # the alarms that it tells are those of the events after this one
    sa.Column("last", NUMBER),  # up to this one
    sa.Column("state", PLAIN, nullable=False),  # waiting, sent or failed
    sa.Column("attempts", NUMBER, nullable=False),
    sa.Column("due_at", PLAIN, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("attempted_at", PLAIN),
    sa.Column("error", sa.Text),  # what went wrong at the last attempt
    sa.Index("mails_by_state", "state", "due_at"),
    sa.Index("mails_by_admin", "admin_id", "id"),
)
