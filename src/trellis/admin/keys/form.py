"""The form of an API key: its settings, and what the buttons of the grid do without scripts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.keys.grants import Grid
from trellis.admin.submitted import Submitted
from trellis.core.dialect import DIALECTS
from trellis.core.fields import Field, Timestamp, quote
from trellis.core.keys import SETTINGS
from trellis.errors import Fault, refuse_faults

_TICK: Final = "_tick"  # the name of the grid's buttons
_KEEP: Final = "keep"
_DATE: Final = "date"
_SPANS: Final = (("30d", "30 days"), ("90d", "90 days"), ("365d", "A year"), ("never", "Never"), (_DATE, "On another date"))
_UNTIL: Final = Field("until", Timestamp(nullable=True), "In UTC. Only used if the key expires on another date.")
_FIELDS: Final = (*SETTINGS, _UNTIL)
_DIALECTS: Final = tuple((name, name.capitalize()) for name in DIALECTS)
_LABELS: Final = {
    "grants": "What it may do",
    "expires": "Expires",
    "until": "Date",
    "addresses": "Addresses",
    "rateLimit": "Requests per minute",
    "logRequests": "Log requests",
    "dialect": "Dialect",
}
_HELP: Final = {
    "name": "The program or person that will use the key. Shown in lists and logs.",
    "grants": "",
    "expires": "A key that expires by itself cannot be forgotten.",
    "addresses": "One address or network per line, such as 192.0.2.0/24. Empty: from anywhere.",
    "rateLimit": "Empty: the default of this service. 0: no limit.",
    "logRequests": "Requests are logged, without their bodies, and the key's page shows which operations it uses.",
    "dialect": "Invision: a program written for Invision Community 4 can use the key without changes.",
}


class KeyForm(Form):
    """The settings of a key: `KeyForm(grid, typed=request.form)`, `KeyForm(grid, key=record)`."""

    def __init__(self, grid: Grid, *, key: Mapping[str, Any] | None = None, typed: Submitted | None = None) -> None:
        self.grid = grid
        spans = ((_KEEP, _describe_expiry(key)), *_SPANS) if key is not None else _SPANS
        values = {"expires": "90d"} if key is None else {**key, "expires": _KEEP}
        super().__init__(
            _FIELDS,
            values if typed is None else _press_button(grid, typed),
            choices={"expires": spans, "dialect": _DIALECTS},
            widgets={"grants": "groups", "addresses": "lines"},
            labels=_LABELS,
            help=_HELP,
        )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The operations that are ticked."""
        return tuple(name for name in self["grants"].chosen if name in self.grid.names)

    def settings(self) -> dict[str, Any]:
        """Return what was typed, as the operations on keys take it. Raises Refused."""
        raw = self.raw()
        if unknown := [name for name in raw.get("grants", ()) if name not in self.grid.names]:
            detail = f"grants: no box of this form is called {quote(unknown[0])}."
            raise refuse_faults(Fault("grants", "UNKNOWN_OPERATION", detail))
        until, expires = raw.pop("until", ""), raw.pop("expires", _KEEP)
        if expires == _DATE and not until:
            raise refuse_faults(Fault("until", "MISSING_VALUE", "until is missing: enter the date on which the key expires."))
        if expires != _KEEP:
            raw["expires"] = until if expires == _DATE else expires
        return raw


def pressed_button(typed: Submitted) -> str | None:
    """Return the button of the grid that a form was sent by, if it was sent by one."""
    return typed.get(_TICK)


def _press_button(grid: Grid, typed: Submitted) -> Submitted:
    """Return what was typed, with the boxes as the pressed button of the grid leaves them."""
    button = pressed_button(typed)
    if button is None:
        return typed
    kept = [pair for pair in typed.pairs if pair[0] not in {_TICK, "grants"}]
    return Submitted((*kept, ("grants", ""), *(("grants", name) for name in grid.press(button, typed.all("grants")))))


def _describe_expiry(key: Mapping[str, Any]) -> str:
    if not key["expiresAt"]:
        return "Never, as it is"
    at = datetime.fromisoformat(key["expiresAt"])
    return f"{at.day} {at:%b %Y, %H:%M} UTC, as it is"
