"""How an administrator sees the panel: their time zone and theme. That is bookkeeping: it changes nothing for anybody else."""

from concurrent.futures import Future
from typing import Final

from trellis.core.gate import Gate
from trellis.store.admins import administrators

THEMES: Final = ("", "light", "dark")  # "" is that of the system


def set_view(
    gate: Gate, admin: int, *, zone: str | None = None, shows_utc: bool | None = None, theme: str | None = None
) -> Future[None]:
    """Record the time zone of an administrator ("": that of their browser), whether UTC is shown instead, or their theme."""
    values: dict[str, str | bool | None] = {"zone": zone, "shows_utc": shows_utc, "theme": theme}
    changes = {name: value for name, value in values.items() if value is not None}
    return gate.store.write(lambda tx: administrators.set_view(tx, admin, changes), quiet=True)
