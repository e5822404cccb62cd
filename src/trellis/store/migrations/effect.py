"""The effect of a migration step on a database in use, as `trellis migrate --plan` shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of a step on users of the database, and on the previous release.

    `seconds` maps a table to the seconds that the step takes per million rows, on SQLite and on PostgreSQL, as measured with two
    cores. Tables that take no time are omitted. `blocks` are the tables that nobody else can read on PostgreSQL until all steps are
    done; on SQLite all tables can be read. `reads` and `writes` tell whether the previous release can still read the database after
    the step, and whether it still writes everything that is needed. `unknown` describes what that release would ignore.
    """

    seconds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    reads: bool = True
    writes: bool = True
    unknown: str | None = None
