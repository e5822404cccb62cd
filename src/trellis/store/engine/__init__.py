"""Connections, transactions, the writer and the data version, for SQLite and PostgreSQL.

`Store` is one database; `Statement` is a statement that runs often. The clauses are SQL that the two engines spell differently.
"""

from trellis.store.engine.changes import Shown
from trellis.store.engine.clauses import (
    Contains,
    HasJsonMembers,
    IdIn,
    InOrder,
    IsJsonList,
    IsJsonObject,
    JsonMember,
    ListedAmong,
    ListedId,
    MentionsNumber,
    NodeIdIn,
    OfRows,
    Rare,
    TextIn,
    WithoutIndex,
    WithoutIndexOrder,
)
from trellis.store.engine.connect import open_engine
from trellis.store.engine.faults import FORBIDDEN, FULL, NO_WRITES, READ_ONLY
from trellis.store.engine.files import (
    DatabaseInUse,
    FileLock,
    database_files,
    find_reserved,
    remove_database,
    restoring_file,
    sync_folder,
)
from trellis.store.engine.outage import refuse_closed, refuse_full, refuse_late, refuse_unfinished
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Overdue, Rollback, Row, Statement, Taken, Transaction, upsert
from trellis.store.engine.writer import WRITE_LOCK
