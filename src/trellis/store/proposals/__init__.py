"""Proposals: calls that wait for approval, and calls whose approval has been decided."""

from trellis.store.proposals.rows import (
    Proposal,
    close,
    count_open,
    find,
    find_content,
    find_open_by_identity,
    find_overdue,
    insert,
    measure_open,
    purge,
    read_page,
)
