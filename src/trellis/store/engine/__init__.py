"""Connections, transactions, the writer and the data version of both engines."""

from trellis.store.engine.backup import backup
from trellis.store.engine.clauses import Among, AmongOf, Beside, Holds, Member, Mentions, Unled
from trellis.store.engine.store import Store, engine_of
from trellis.store.engine.transaction import Row, Statement, Transaction, Undo

__all__ = [
    "Among",
    "AmongOf",
    "Beside",
    "Holds",
    "Member",
    "Mentions",
    "Row",
    "Statement",
    "Store",
    "Transaction",
    "Undo",
    "Unled",
    "backup",
    "engine_of",
]
