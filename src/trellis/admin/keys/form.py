"""The form of an API key: its settings as they are asked for in the panel, and what the buttons of the grid do without scripts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.keys.grants import Grid
from trellis.admin.page import Submitted
from trellis.core.fields import Field, Timestamp, quote
from trellis.core.keys import SETTINGS
from trellis.errors import Fault, refuse_faults

TICK: Final = "_tick"
VERSION: Final = "_version"
_KEEP: Final = "keep"
_DATE: Final = "date"
_SPANS: Final = (("30d", "30 days"), ("90d", "90 days"), ("365d", "A year"), ("never", "Never"), (_DATE, "On a date of your own"))
_UNTIL: Final = Field("until", Timestamp(nullable=True), "In UTC. Only used when the key ends on a date of your own.")
_FIELDS: Final = (*SETTINGS, _UNTIL)
_LABELS: Final = {
    "grants": "What it may do",
    "expires": "Ends",
    "until": "Own date",
    "addresses": "Addresses",
    "rateLimit": "Requests per minute",
    "logRequests": "Log requests",
}
_HELP: Final = {
    "name": "The program or person that will hold the key. Shown in lists and logs.",
    "grants": "",
    "expires": "A key that ends by itself cannot be forgotten.",
    "addresses": "One address or network a line, such as 192.0.2.0/24. Empty: from everywhere.",
    "rateLimit": "Empty: as for every key of this service. 0: no limit.",
    "logRequests": "Each request stands in the request log, and the key's page shows what it uses. Never what was sent.",
}


class KeyForm(Form):
    """The settings of a key: `KeyForm(typed=visit.form)`, `KeyForm(key=record)`. `grid` names what can be ticked."""

    def __init__(self, grid: Grid, *, key: Mapping[str, Any] | None = None, typed: Submitted | None = None) -> None:
        self.grid = grid
        ends = ((_KEEP, _ends(key)), *_SPANS) if key is not None else _SPANS
        values = {"expires": "90d"} if key is None else {**key, "expires": _KEEP}
        super().__init__(
            _FIELDS,
            values if typed is None else _after_tick(grid, typed),
            choices={"expires": ends},
            widgets={"grants": "groups", "addresses": "lines"},
            labels=_LABELS,
            help=_HELP,
        )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The operations that are ticked."""
        return tuple(name for name in self["grants"].chosen if name in self.grid.names)

    def settings(self) -> dict[str, Any]:
        """Give what was typed as the operations on keys take it. Raises Refused."""
        raw = self.raw()
        if strange := [name for name in raw.get("grants", ()) if name not in self.grid.names]:
            detail = f"grants: no box of this form is called {quote(strange[0])}."
            raise refuse_faults((Fault("grants", "UNKNOWN_OPERATION", detail),))
        until, ends = raw.pop("until", ""), raw.pop("expires", _KEEP)
        if ends == _DATE and not until:
            raise refuse_faults((Fault("until", "MISSING_VALUE", "until is needed for a date of your own."),))
        if ends != _KEEP:
            raw["expires"] = until if ends == _DATE else ends
        return raw


def tick(typed: Submitted) -> str | None:
    """Say which button of the grid a form was sent by, if it was by one."""
    return typed.get(TICK)


def _after_tick(grid: Grid, typed: Submitted) -> Submitted:
    """Give what was typed, with the boxes as they are after the button of the grid that it was sent by."""
    button = tick(typed)
    if button is None:
        return typed
    kept = [pair for pair in typed.pairs if pair[0] not in {TICK, "grants"}]
    return Submitted((*kept, ("grants", ""), *(("grants", name) for name in grid.ticked(button, typed.all("grants")))))


def _ends(key: Mapping[str, Any]) -> str:
    if not key["expiresAt"]:
        return "Never, as it is"
    at = datetime.fromisoformat(key["expiresAt"])
    return f"{at.day} {at:%b %Y, %H:%M} UTC, as it is"
