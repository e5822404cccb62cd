"""The bounds of a key's grants in its form: a row for each operation that is ticked, with a control for each member of a bound."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.keys.grants import Box
from trellis.admin.submitted import Submitted
from trellis.admin.times import Clock
from trellis.core.keys import BOUND_MEMBERS
from trellis.errors import Fault
from trellis.sentences import adapt, say

PREFIX: Final = "bounds."
_NAMES: Final = tuple(member.name for member in BOUND_MEMBERS)
_LABELS: Final = {
    "level": say("Level"),
    "under": say("Within"),
    "until": say("Until"),
    "perDay": say("Times a day"),
    "dryRunOnly": say("Dry runs only"),
    "ownOnly": say("Only what it did itself"),
}
_IS_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT.*")


@dataclass(frozen=True, slots=True)
class BoundRow:
    """The bound of one grant as it is shown: `values` are the texts by member.

    If the operation `writes`, the grant can be limited to proposals or dry runs; if it `is_about_events`, to what the key itself
    did.
    """

    name: str
    summary: str
    writes: bool
    is_about_events: bool
    values: Mapping[str, str]
    faults: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The prefix of the ids of its controls."""
        return "bound-" + self.name.replace(".", "-")

    @property
    def is_set(self) -> bool:
        """Whether it limits anything."""
        return _limits_anything(self.values)


def split_bounds(typed: Submitted) -> tuple[Submitted, dict[str, dict[str, str]]]:
    """Split a sent form into its fields without the bounds, and the bounds by operation and member."""
    bounds: dict[str, dict[str, str]] = {}
    rest: list[tuple[str, str]] = []
    for name, value in typed.pairs:
        operation, _, member = name.removeprefix(PREFIX).rpartition(".")
        if name.startswith(PREFIX) and member in _NAMES:
            bounds.setdefault(operation, {})[member] = value.strip()
        else:
            rest.append((name, value))
    return Submitted(rest, typed.size), bounds


def describe_typed(
    bounds: Mapping[str, Mapping[str, str]], chosen: Iterable[str], stored: Mapping[str, Mapping[str, Any]], clock: Clock
) -> dict[str, dict[str, Any]]:
    """Return the typed bounds of the ticked grants as the operations on keys accept them, without the members that were left empty.

    A time without an offset is in the clock's time zone. A time that is still as it was shown keeps its stored value, to the
    millisecond.
    """
    ticked = set(chosen)

    def read_until(name: str, value: str) -> str:
        known = stored.get(name, {})
        return str(known["until"]) if value == _show(known, clock)["until"] else clock.read_typed(value)

    return {
        name: {member: read_until(name, value) if member == "until" else value for member, value in typed.items() if value}
        for name, typed in bounds.items()
        if name in ticked and _limits_anything(typed)
    }


def _limits_anything(texts: Mapping[str, str]) -> bool:
    """Return whether a bound with these texts by member limits anything: a box that is not ticked does not, 0 times a day does."""
    return any(value not in ({"", "0", "allow"} if name != "perDay" else {""}) for name, value in texts.items())


def build_rows(
    boxes: Iterable[Box],
    stored: Mapping[str, Mapping[str, Any]],
    typed: Mapping[str, Mapping[str, str]] | None,
    faults: Iterable[Fault],
    clock: Clock,
) -> tuple[BoundRow, ...]:
    """Build the rows of some grants, from the typed bounds, or from the stored ones where none were typed."""
    found = list(faults)
    return tuple(
        BoundRow(
            box.name,
            box.summary,
            not box.reads and not box.is_plan,
            box.is_about_events,
            _show(stored.get(box.name, {}), clock)
            if typed is None or box.name not in typed
            else dict.fromkeys(_NAMES, "") | dict(typed[box.name]),
            tuple(describe_fault(fault) for fault in found if fault.field.startswith(f"{PREFIX}{box.name}.")),
        )
        for box in boxes
    )


def describe_fault(fault: Fault) -> str:
    """Return the text of a fault in a bound, with the member named by the label of its control."""
    operation, _, member = fault.field.removeprefix(PREFIX).rpartition(".")
    if member not in _LABELS:
        return fault.detail
    told = adapt(fault.detail, lambda detail, _: detail.removeprefix(fault.field).lstrip(": "))
    return say("{member} of {operation}: {detail}", member=_LABELS[member], operation=operation, detail=told)


def _show(bound: Mapping[str, Any], clock: Clock) -> dict[str, str]:
    """Return a stored bound as texts by member."""
    texts = {name: bound.get(name) for name in _NAMES}
    if texts["until"] and _IS_MOMENT.fullmatch(texts["until"]):
        texts["until"] = clock.at(texts["until"]).isoformat(timespec="seconds")
    return {
        name: ", ".join(value) if isinstance(value, list) else "1" if value is True else "" if value is None else str(value)
        for name, value in texts.items()
    }
