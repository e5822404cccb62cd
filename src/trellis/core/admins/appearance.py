"""How an administrator sees the panel: time zone, theme and language. That is bookkeeping: it changes nothing for anybody else."""

from concurrent.futures import Future
from typing import Final

from trellis.core.gate import Gate
from trellis.store.admins import administrators

THEMES: Final = ("", "light", "dark")  # "" means that of the system


def set_view(
    gate: Gate,
    admin: int,
    *,
    zone: str | None = None,
    shows_utc: bool | None = None,
    theme: str | None = None,
    language: str | None = None,
) -> Future[None]:
    """Record what an administrator has chosen: a time zone, UTC instead of it, a theme, a language ("": their browser's)."""
    values: dict[str, str | bool | None] = {"zone": zone, "shows_utc": shows_utc, "theme": theme, "language": language}
    changes = {name: value for name, value in values.items() if value is not None}
    return gate.store.write(lambda tx: administrators.set_view(tx, admin, changes), quiet=True)
