"""Connections, transactions, the writer and the data version of both engines.

`Store` is one database; `Statement` is a statement that runs often. The clauses are SQL that both engines spell differently.
"""

from trellis.store.engine.backup import backup
from trellis.store.engine.clauses import (
    Contains,
    IdIn,
    JsonMember,
    MentionsNumber,
    NodeIdIn,
    WithoutIndex,
    WithoutIndexOrder,
)
from trellis.store.engine.store import Store, create_engine
from trellis.store.engine.transaction import Rollback, Row, Statement, Transaction

__all__ = [
    "Contains",
    "IdIn",
    "JsonMember",
    "MentionsNumber",
    "NodeIdIn",
    "Rollback",
    "Row",
    "Statement",
    "Store",
    "Transaction",
    "WithoutIndex",
    "WithoutIndexOrder",
    "backup",
    "create_engine",
]
