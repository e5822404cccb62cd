"""Conflicts between two administrators: a form is saved only if nobody has changed what it showed."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from trellis.admin.forms import Form
from trellis.admin.page import PageRequest
from trellis.core.gate import Result
from trellis.core.version import record_version
from trellis.errors import Refused
from trellis.sentences import say

VERSION: Final = "_version"  # the field in which a form carries the version of the record that it was made from
_MAX_TRIES: Final = 5
PLACE: Final = frozenset(("parentId", "position", "before", "after"))  # the fields that move a node


class Conflict(Exception):
    """The record has changed since the page showed it; `record` is its current state."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        super().__init__()
        self.record = record


def carry_version(request: PageRequest, current: str, *, is_conflict: bool) -> str:
    """Return the version for a form that is shown: `current`, or the one that it was sent with if it was refused for another fault.

    Then what had changed before is still noticed when it is sent again.
    """
    return ("" if is_conflict else request.form.get(VERSION, "")) or current


async def fetch_last_events(request: PageRequest, resource: str, number: int, limit: int) -> list[dict[str, Any]]:
    """Return the last events of a record, the newest first. Raises Refused."""
    about = {"resource": resource, "resourceId": number, "order": "newest", "limit": limit}
    events: list[dict[str, Any]] = (await request.fetch("events.list", about))["results"]
    return events


async def fetch_last_event(request: PageRequest, resource: str, number: int) -> dict[str, Any] | None:
    """Return the last event of a record; None if none is left. Raises Refused."""
    return next(iter(await fetch_last_events(request, resource, number, 1)), None)


async def update_if_unchanged(
    request: PageRequest,
    record: Mapping[str, Any],
    raw: Mapping[str, Any],
    resource: str,
    version_of: Callable[[Mapping[str, Any]], str],
) -> Result:
    """Update a record if its version, by `version_of`, is still the one that the form showed. Raises Conflict if not, and Refused.

    `record` is the record as it was read for this request. Members that `version_of` leaves out may change in the meantime; the
    update is then retried with the newest version.
    """
    request.require_fresh_form()
    shown = request.form.get(VERSION, "")
    for _ in range(_MAX_TRIES):
        if version_of(record) != shown:
            if (saved := await find_saved(request, record, raw, resource, version_of)) is not None:
                return saved
            raise Conflict(record)
        try:
            return await request.perform(f"{resource}.update", raw, record["id"], expected=(record_version(record),))
        except Refused as refused:
            if refused.status != 412:
                raise
        record = await request.fetch(f"{resource}.get", target=record["id"])
    raise Refused("BUSY", say("Others keep changing this record. Nothing was saved: send the form again."))


async def find_saved(
    request: PageRequest,
    record: Mapping[str, Any],
    raw: Mapping[str, Any],
    resource: str,
    version_of: Callable[[Mapping[str, Any]], str],
    settle: Callable[[Mapping[str, Any], str], Mapping[str, Any]] = lambda raw, _at: raw,
) -> Result | None:
    """Return this administrator's latest update of the record if it saved all of `raw`: their form was sent twice. None otherwise.

    `settle` returns the values as they were meant at the time of that update; for example, it turns "in 30 days" into a time.
    """
    update = f"{resource}.update"
    if any(raw.get(name) for name in request.catalogue.find(update).secrets):
        return None  # no record shows which password it has
    last = await fetch_last_event(request, resource, record["id"])
    if last is None or last["operation"] != update or not request.actor.is_named(last["actor"]):
        return None
    try:
        planned = await request.dry_run(update, settle(raw, last["at"]), record["id"])
    except Refused as refused:
        if refused.status >= 500:
            raise
        return None  # what is refused was not saved
    if version_of({name: planned.get(name) for name in record}) != version_of(record):
        return None
    if not PLACE.isdisjoint(raw) and planned["position"] != record["position"]:
        return None  # the version of a node does not include its position, since siblings shift it
    return Result(record, last["seq"])


def compare_settings(
    form: Form, saved: Mapping[str, Any], typed: Mapping[str, Any], format_value: Callable[[str, Any], str]
) -> tuple[tuple[str, str, str], ...]:
    """Return the fields of a form in which saved and typed values differ, as (label, saved, typed).

    `format_value` is given the name and the value of a field that is not a checkbox.
    """

    def show(name: str, value: Any) -> str:
        if form.widget(name) == "checkbox":
            return say("yes") if value in (True, "1") else say("no")
        return format_value(name, value)

    names = [name for name in form.fields if name in saved]
    rows = ((form[name].label, show(name, saved[name]), show(name, typed.get(name, saved[name]))) for name in names)
    return tuple(row for row in rows if row[1] != row[2])
