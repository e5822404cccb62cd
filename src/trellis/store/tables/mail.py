"""The table of mails to send, which also records the results."""

import sqlalchemy as sa

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.tables.metadata import METADATA

# The text of a mail is written only when it is sent, so that a link is not valid before, and nobody can read one in this table.
mails = sa.Table(
    "mails",
    METADATA,
    sa.Column("id", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("kind", PLAIN, nullable=False),  # alarms, invitation, changed-address or fewer-alarms
    sa.Column("admin_id", NUMBER, nullable=False),  # the administrator to whom it is sent
    sa.Column("recipient", sa.Text),  # its address; null for the address of that administrator
    sa.Column("first", NUMBER),  # it reports the alarms of the events after this one
    sa.Column("last", NUMBER),  # and up to this one
    sa.Column("state", PLAIN, nullable=False),  # waiting, sent or failed
    sa.Column("attempts", NUMBER, nullable=False),
    sa.Column("due_at", PLAIN, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("attempted_at", PLAIN),
    sa.Column("error", sa.Text),  # what went wrong at the last attempt
    sa.Index("mails_by_state", "state", "due_at"),
    sa.Index("mails_by_admin", "admin_id", "id"),
)
