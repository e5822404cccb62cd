"""Taking unused grants away from a key, and what leads back from there."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.keys.grants import Grid
from trellis.admin.page import Page, PageRequest
from trellis.core.fields import isolate
from trellis.errors import Refused

_HERE: Final = "/keys/{id:int}/ungrant"
_SECTION: Final = "keys"
_REASON: Final = "Not used for 30 days"
AGAIN: Final = "again"  # in the address of a key's form: the event of which the grants are ticked again


async def ask(request: PageRequest) -> Response:
    """Ask which of the unused grants are to be taken away."""
    key = await request.fetch("keys.get", target=request.number("id"))
    summary = await request.fetch("requests.summary", {"key": key["id"]}, slow=True)
    return request.page(
        "keys/ungrant.html",
        title=f"Take unused grants away from {isolate(key['name'])}",
        key=key,
        grid=Grid(request.catalogue),
        unused=summary["unused"] or [],
    )


async def ungrant(request: PageRequest) -> Response:
    """Remove the grants that are ticked, and no others."""
    number, names = request.number("id"), request.form.all("operation")
    result = await request.perform("keys.update", {"ungrant": list(names)}, number, reason=_REASON)
    if not result.event:
        return request.redirect(f"/keys/{number}", "Nothing was changed.")
    message = f"{len(names)} unused operations were taken away." if len(names) > 1 else "An unused operation was taken away."
    return request.redirect(f"/keys/{number}", message, back=("Give them back…", build_path_back(number, result.event)))


def build_path_back(key: int, event: int) -> str:
    """Return the path of the key's form with what an event has taken away ticked again."""
    return f"/keys/{key}/edit?{AGAIN}={event}"


def find_lost(event: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the grants that an event has taken away from a key."""
    before, after = event["before"] or {}, event["after"] or {}
    if event["resource"] != "keys" or "grants" not in before or "grants" not in after:
        return ()
    return tuple(name for name in before["grants"] if name not in after["grants"])


async def restore_ticks(request: PageRequest, key: Mapping[str, Any]) -> tuple[Mapping[str, Any], int]:
    """Return the key as it would be with what the event in the address has taken away, and how many grants these are."""
    number = request.query.get(AGAIN, "")
    try:
        event = await request.fetch("events.get", target=int(number)) if number.isdecimal() and len(number) < 19 else None
    except Refused:
        event = None
    if event is None or event["resourceId"] != key["id"]:
        return key, 0
    lost = [name for name in find_lost(event) if name not in key["grants"]]
    bounds = {name: bound for name, bound in (event["before"].get("bounds") or {}).items() if name in lost}
    return {**key, "grants": [*key["grants"], *lost], "bounds": {**key["bounds"], **bounds}}, len(lost)


PAGES: Final = (
    Page("GET", _HERE, ask, _SECTION),
    Page("POST", _HERE, ungrant, _SECTION),
)
