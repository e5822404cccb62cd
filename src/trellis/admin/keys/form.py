"""The form of an API key: its settings, and the effect of the grid's buttons when there are no scripts."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.keys.bounds import PREFIX, BoundRow, build_rows, describe_fault, describe_typed, split_bounds
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.sentence import Abilities, describe_abilities
from trellis.admin.submitted import Submitted
from trellis.admin.times import Clock
from trellis.core.dialect import DIALECTS
from trellis.core.fields import Field, Timestamp, quote
from trellis.core.keys import KEEP_WEBHOOKS, PRESET, PRESETS, REASON, SETTINGS, describe_preset
from trellis.errors import Fault, refuse_fault
from trellis.sentences import say

_TICK: Final = "_tick"  # the name of the grid's buttons
_BOUNDS: Final = "bounds"  # the button that lists the ticked operations with their bounds
_KEEP: Final = "keep"
_DATE: Final = "date"
_SPANS: Final = (
    ("7d", say("7 days")),
    ("30d", say("30 days")),
    ("90d", say("90 days")),
    ("365d", say("A year")),
    ("never", say("Never")),
    (_DATE, say("On another date")),
)
_NEVER_KEPT: Final = say("Never (unchanged)")
_NEW: Final[Mapping[str, Any]] = {"expires": "90d", "bounds": {}}
_UNTIL: Final = Field(
    "until", Timestamp(nullable=True), say("Only used if the key expires on another date."), applies=("expires", (_DATE,))
)
_FIELDS: Final = (*SETTINGS, PRESET, _UNTIL)
_DIALECTS: Final = tuple((name, name.capitalize()) for name in DIALECTS)
_LABELS: Final = {
    "grants": say("What it may do"),
    "bounds": say("Bounds"),
    "expires": say("Expires"),
    "until": say("Date"),
    "addresses": say("Addresses"),
    "rateLimit": say("Requests per minute"),
    "perDay": say("Uses a day"),
    "logRequests": say("Log requests"),
    "dialect": say("Dialect"),
}
_HELP: Final = {
    "name": say("The program that will use the key. Shown in lists and logs."),
    "owner": say("The person or team to ask about this key."),
    "note": say("What somebody who finds this key in a year should know."),
    "grants": "",
    "bounds": "",
    "expires": say("A key that expires cannot stay active by mistake."),
    "addresses": say("One address or network per line, such as 192.0.2.0/24. Empty: from anywhere."),
    "rateLimit": say("Empty: the service default. 0: no limit."),
    "perDay": say("Counts all its grants together, but not dry runs and refused requests. Empty: no limit."),
    "logRequests": say("Requests are logged, without their bodies, and the key's page shows which operations it uses."),
    "dialect": say("Invision: a program written for Invision Community 4 can use the key without changes."),
}


def build_reason_form(fields: Iterable[Field], typed: Submitted | None, keeps: tuple[str, str] = ("", "")) -> Form:
    """Build the form that asks why keys are paused or revoked. `keeps`: label and note of the box that keeps webhooks on."""
    seen = say("Other administrators see the reason in the list of keys and in the event log.")
    return Form(
        fields,
        typed,
        labels={REASON.name: say("Why"), KEEP_WEBHOOKS.name: keeps[0]},
        help={REASON.name: seen, KEEP_WEBHOOKS.name: keeps[1]},
    )


class KeyForm(Form):
    """The settings of a key: `KeyForm(grid, typed=request.form, clock=…)`, `KeyForm(grid, key=record, clock=…)`.

    `preset` is the name of the preset of a new key, which a sent form contains; an unknown name is ignored. `begun` are further
    initial settings of a new key.
    """

    def __init__(
        self,
        grid: GrantGrid,
        *,
        key: Mapping[str, Any] | None = None,
        typed: Submitted | None = None,
        preset: str = "",
        begun: Mapping[str, Any] | None = None,
        clock: Clock,
    ) -> None:
        self.grid = grid
        preset = preset if typed is None else typed.get(PRESET.name, "")
        self.preset = preset if key is None and preset in PRESETS else ""
        from_preset = describe_preset(PRESETS[self.preset], grid.operations) if self.preset else _NEW
        begun = {**from_preset, **(begun or {})}
        self._stored: Mapping[str, Any] = (begun if key is None else key)["bounds"]
        self._bounds: dict[str, dict[str, str]] | None = None
        self._pressed = typed is not None and pressed_button(typed) == _BOUNDS
        if typed is not None:
            typed, self._bounds = split_bounds(typed)
        self._kept_until = clock.full(key["expiresAt"]) if key is not None and key["expiresAt"] else ""
        spans = ((_KEEP, _describe_expiry(key, clock)), *_SPANS) if key is not None else _SPANS
        values = {**begun, PRESET.name: preset} if key is None else {**key, "expires": _KEEP}
        super().__init__(
            _FIELDS,
            values if typed is None else press_button(grid, typed),
            choices={"expires": spans, "dialect": _DIALECTS},
            widgets={"grants": "groups", "addresses": "lines"},
            labels=_LABELS,
            help=_HELP,
            clock=clock,
        )

    @property
    def chosen(self) -> tuple[str, ...]:
        """The operations that are ticked."""
        return tuple(name for name in self["grants"].chosen if name in self.grid.names)

    def text_of(self, fault: Fault) -> str:
        """Return the text of a fault, with the field named by its label."""
        return describe_fault(fault) if fault.field.startswith(PREFIX) else super().text_of(fault)

    @property
    def bound_rows(self) -> tuple[BoundRow, ...]:
        """The bounds of the operations that are ticked."""
        boxes = [box for box in self.grid.boxes if box.name in self.chosen]
        return build_rows(boxes, self._stored, self._bounds, self.faults, self.clock)

    @property
    def abilities(self) -> Abilities:
        """What the key will be able to do, in sentences."""
        value_of = {name: self[name].value for name in ("addresses", "perDay", "rateLimit", "logRequests")}
        return describe_abilities(self.grid, self.bound_rows, value_of | {"lasts": self._describe_span()})

    def _describe_span(self) -> str:
        chosen, until = self["expires"].value, self["until"].value
        if chosen == _DATE:
            if not until:
                return say("until a date you have yet to enter")
            return say("until {time} in {zone}", time=until.replace("T", " "), zone=self.clock.name)
        text = dict(self["expires"].choices).get(chosen, "")
        if chosen == "never" or text == _NEVER_KEPT:
            return say("until somebody revokes it")
        if chosen == _KEEP:
            return say("until {time}", time=self._kept_until)
        return say("for {span}", span=say(text.lower()))

    @property
    def shows_bounds(self) -> bool:
        """Whether the bounds are shown from the start: some are set, one has a fault, or the button that lists them was pressed.

        With a preset, bounds that are set do not count: there are many of them, and sentences describe them.
        """
        return self._pressed or any(row.faults or (row.is_set and not self.preset) for row in self.bound_rows)

    def settings(self) -> dict[str, Any]:
        """Return the typed settings as the operations on keys accept them. Raises Refused."""
        raw = self.raw()
        if unknown := [name for name in raw.get("grants", ()) if name not in self.grid.names]:
            detail = say("grants: this form has no operation called {unknown}.", unknown=quote(unknown[0]))
            raise refuse_fault("grants", "UNKNOWN_OPERATION", detail)
        typed, ticked = self._bounds or {}, set(raw.get("grants", ()))
        kept = {name: bound for name, bound in self._stored.items() if name in ticked and name not in typed}
        clock = self.clock.reading(self._typed or {})
        raw["bounds"] = kept | self._describe_unbounded(typed, ticked) | describe_typed(typed, ticked, self._stored, clock)
        if not self.preset:
            raw.pop(PRESET.name, None)
        until, expires = raw.pop("until", ""), raw.pop("expires", _KEEP)
        if expires == _DATE and not until:
            raise refuse_fault("until", "MISSING_VALUE", say("until is missing: enter the date on which the key expires."))
        if expires != _KEEP:
            raw["expires"] = until if expires == _DATE else expires
        return raw

    def _describe_unbounded(self, typed: Iterable[str], ticked: AbstractSet[str]) -> dict[str, None]:
        """Return null bounds for the ticked operations if there is a preset: they remove its bounds, unless others were typed."""
        return dict.fromkeys(name for name in typed if name in ticked) if self.preset else {}


def pressed_button(typed: Submitted) -> str | None:
    """Return the button of the grid that sent a form; None if no button of the grid did."""
    return typed.get(_TICK)


def press_button(grid: GrantGrid, typed: Submitted) -> Submitted:
    """Return a sent form with the boxes as the pressed button of the grid leaves them; unchanged if none was pressed."""
    button = pressed_button(typed)
    if button is None:
        return typed
    kept = [pair for pair in typed.pairs if pair[0] not in {_TICK, "grants"}]
    return Submitted((*kept, ("grants", ""), *(("grants", name) for name in grid.press(button, typed.all("grants")))))


def _describe_expiry(key: Mapping[str, Any], clock: Clock) -> str:
    if not key["expiresAt"]:
        return _NEVER_KEPT
    return say("{time} (unchanged)", time=clock.full(key["expiresAt"]))
