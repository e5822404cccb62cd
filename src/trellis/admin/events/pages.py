"""The event log: who did what, when and why, searched; one event with what it has changed."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.events.diff import changes
from trellis.admin.events.undoable import standings
from trellis.admin.filters import filters, key_names
from trellis.admin.forms import Form
from trellis.admin.page import Page, Submitted, Visit
from trellis.core.events import FILTERS
from trellis.core.fields import Field, Text
from trellis.errors import Refused

_HERE: Final = "/events"
_SECTION: Final = "events"
_BEFORE: Final = Field("before", Text(20), "")
_ACTOR: Final = Field("actor", Text(60), "")
_ASKED: Final = tuple(field for field in FILTERS if not field.name.startswith("actor"))


async def index(visit: Visit) -> Response:
    """Search the log."""
    query = filters(visit)
    actors = await _actors(visit)
    form = _form(visit, query, actors)
    found: dict[str, Any] = {"results": [], "next": None, "complete": True}
    status = 200
    try:
        raw = form.raw()
        kind, _, number = raw.pop("actor", "").partition(":")
        raw |= ({"actorType": kind} if kind else {}) | ({"actorId": number} if number else {})
        found = (await visit.perform("events.search", raw, slow=True)).value
    except Refused as refused:
        form.at_fault(refused)
        status = 400
    return visit.page(
        "events/index.html",
        status=status,
        title="Events",
        form=form,
        found=found,
        standings=await standings(visit, found["results"]),
        query=dict(query),
        filtered=bool(set(query) - {"before"}),
    )


async def _actors(visit: Visit) -> list[tuple[str, str]]:
    """Give who can have done something: the administrators, the terminal, the newest keys."""
    admins: Mapping[str, Any] = (await visit.perform("admins.list", {"perPage": 200})).value
    people = [(f"admin:{admin['id']}", admin["name"]) for admin in admins["results"]]
    keys = [(f"key:{number}", f"Key {name} ({number})") for number, name in (await key_names(visit)).items()]
    return [("admin", "Any administrator"), *people, ("terminal", "The terminal"), ("key", "Any key"), *keys]


def _form(visit: Visit, query: Submitted, actors: list[tuple[str, str]]) -> Form:
    catalogue = visit.house.gate.catalogue
    writes = sorted(operation.name for operation in catalogue.values() if operation.writes)
    resources = sorted({operation.resource for operation in catalogue.values() if operation.writes})
    return Form(
        (_ACTOR, *_ASKED, _BEFORE),
        query,
        choices={
            "actor": [("", "Anybody"), *actors],
            "operation": [("", "Any operation"), *((name, name) for name in writes)],
            "resource": [("", "Anything"), *((name, name) for name in resources)],
        },
        labels={
            "actor": "Who",
            "resource": "On what",
            "resourceId": "Its id",
            "requestId": "Request id",
            "from": "From (UTC)",
            "to": "To (UTC)",
        },
        help=dict.fromkeys((field.name for field in (_ACTOR, *_ASKED, _BEFORE)), ""),
    )


async def show(visit: Visit) -> Response:
    """Show one event."""
    event = (await visit.perform("events.get", target=visit.number("id"))).value
    groups: Mapping[str, Any] = (await visit.perform("groups.list", {"perPage": 1000})).value
    names = {group["id"]: group["name"] for group in groups["results"]}
    return visit.page(
        "events/show.html",
        title=f"Event {event['seq']:,}",
        event=event,
        changes=changes(event, visit.house.gate.environment.kinds, names),
        record=_record(event),
        standing=(await standings(visit, [event])).get(event["seq"]),
        days=visit.house.gate.environment.keep_snapshots,
    )


def _record(event: Mapping[str, Any]) -> str:
    """Give the path of the page of what an event is about, if that is still there."""
    number, resource = event["resourceId"], event["resource"]
    if number is None or event["after"] is None:
        return ""
    return f"/{'administrators' if resource == 'admins' else resource}/{number}"


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION),
)
