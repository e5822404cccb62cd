"""What a step does to a database that is in use, as `trellis migrate --plan` tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a step asks of those who use the database, and of the release before it.

    `seconds` are those per million rows of a table, on SQLite and on PostgreSQL, as measured with two cores; what takes none stands
    nowhere. `blocks` are the tables that on PostgreSQL nobody else can read until all steps are done; on SQLite everybody can.
    `reads` and `writes` say whether the release before still reads what is there afterwards, and writes all that is needed.
    `unknown` is what that release does not know of and would pass over.
    """

    seconds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    reads: bool = True
    writes: bool = True
    unknown: str | None = None
