"""API keys: their rows, and how often their limited grants are used."""

from trellis.store.keys import uses
from trellis.store.keys.rows import (
    Key,
    find,
    find_by_name,
    find_by_public_part,
    find_for_write,
    find_running,
    insert,
    read_granted,
    read_page,
    record_uses,
    update,
)

__all__ = [
    "Key",
    "find",
    "find_by_name",
    "find_by_public_part",
    "find_for_write",
    "find_running",
    "insert",
    "read_granted",
    "read_page",
    "record_uses",
    "update",
    "uses",
]
