"""The event log: searching who did what, when and why, and one event with its changes."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.events.diff import event_changes
from trellis.admin.filters import fetch_filtered
from trellis.admin.forms import read_ids
from trellis.admin.keys import fetch_key_names
from trellis.admin.nodes import fetch_groups
from trellis.admin.page import Page, PageRequest
from trellis.core.events import FILTERS, list_types
from trellis.core.fields import Field, Text, isolate
from trellis.sentences import say

_HERE: Final = "/events"
_SECTION: Final = "events"
_MOST_ADMINS: Final = 200  # in the filter
_BEFORE: Final = Field("before", Text(20), "")
_ACTOR: Final = Field("actor", Text(60), "")
_FINAL: Final = {
    "keys.revoke": say("This event cannot be undone: a revoked key stays revoked, so that nobody regains access."),
    "keys.rotate": say("This event cannot be undone: the replaced secret is not kept."),
}
_FILTERS: Final = (_ACTOR, *(field for field in FILTERS if not field.name.startswith("actor")), _BEFORE)


async def index(request: PageRequest) -> Response:
    """Search the log."""
    writes = sorted(operation.name for operation in request.catalogue.values() if operation.writes and not operation.is_plan)
    resources = sorted({operation.resource for operation in request.catalogue.values() if operation.writes})
    actors = await _fetch_actors(request, request.query.get("actor", ""))
    listed = await fetch_filtered(
        request,
        "events.search",
        _FILTERS,
        choices={
            "actor": [("", say("Anybody")), *actors],
            "type": [("", say("Anything")), *((name, name) for name in sorted(list_types(request.catalogue.values())))],
            "operation": [("", say("Any operation")), *((name, name) for name in writes)],
            "resource": [("", say("Anything")), *((name, name) for name in resources)],
        },
        labels={
            "actor": say("Who"),
            "type": say("What happened"),
            "resource": say("Record type"),
            "resourceId": say("Record id"),
            "requestId": say("Request id"),
            "changeSet": say("Change set"),
            "from": say("From"),
            "to": say("To"),
        },
        adjust=_split_actor,
    )
    return request.page("events/index.html", title=say("Events"), **listed)


def _split_actor(raw: dict[str, Any]) -> dict[str, Any]:
    """Return filters with the type and the id of the actor, which are one choice in the form."""
    actor_type, _, actor_id = raw.pop(_ACTOR.name, "").partition(":")
    return raw | ({"actorType": actor_type} if actor_type else {}) | ({"actorId": actor_id} if actor_id else {})


async def _fetch_actors(request: PageRequest, chosen: str) -> list[tuple[str, str]]:
    """Return the choices for who did something: the administrators, the terminal, the service, the newest keys.

    There may be more administrators and keys than are listed; the chosen one is always among them.
    """
    people = [(f"admin:{admin['id']}", admin["name"]) for admin in await _fetch_admins(request, chosen)]
    keys = [
        (f"key:{number}", say("Key {name} ({number})", name=isolate(name), number=number))
        for number, name in (await fetch_key_names(request, chosen.removeprefix("key:"))).items()
    ]
    own = [("terminal", say("The terminal")), ("service", say("The service"))]
    return [("admin", say("Any administrator")), *people, *own, ("key", say("Any key")), *keys]


async def _fetch_admins(request: PageRequest, chosen: str) -> list[Mapping[str, Any]]:
    if not request.actor.may("admins.list"):
        return []
    found: list[Mapping[str, Any]] = (await request.fetch("admins.list", {"perPage": _MOST_ADMINS}))["results"]
    for number in read_ids([chosen.removeprefix("admin:")])[:1]:
        if all(number != one["id"] for one in found) and (admin := await request.find("admins.get", number)) is not None:
            found.append(admin)
    return found


async def show(request: PageRequest) -> Response:
    """Show one event."""
    event = await request.fetch("events.get", target=request.number("id"))
    return request.page(
        "events/show.html",
        title=say("Event {seq:,}", seq=event["seq"]),
        event=event,
        changes=event_changes(event, request.kinds, await fetch_groups(request)),
        record=_record_path(event),
        final=_FINAL.get(event["operation"], ""),
        days=request.gate.environment.keep_snapshots,
    )


def _record_path(event: Mapping[str, Any]) -> str:
    """Return the path of the page of an event's record; "" if there is no record, or if the event deleted it."""
    number, resource = event["resourceId"], event["resource"]
    if number is None or event["after"] is None:
        return ""
    return f"/{'administrators' if resource == 'admins' else resource}/{number}"


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, live=("events",), needs=("events.search",)),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION, needs=("events.get",)),
)
