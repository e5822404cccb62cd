"""API keys: their rows, and the daily uses of grants that are limited in uses per day."""

from trellis.store.keys import uses
from trellis.store.keys.rows import (
    Key,
    count_active,
    find,
    find_by_name,
    find_by_public_part,
    find_expiring,
    find_for_write,
    find_running,
    find_unused,
    insert,
    read_granted,
    read_page,
    record_uses,
    update,
)
