"""The request log: searching the requests to the API, and one request with its error and its event."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.filters import fetch_filtered
from trellis.admin.keys import GrantGrid, MissingGrant, add_key_names, fetch_key_names, find_refused_grant
from trellis.admin.page import Page, PageRequest
from trellis.core.fields import Field, Text, isolate
from trellis.core.hello import HELLO
from trellis.core.requests import FILTERS, METHODS
from trellis.http.routes import build_routes, find_in_reference
from trellis.kinds.invision import INVISION
from trellis.refusals import REFUSALS, Refusal
from trellis.sentences import say

_HERE: Final = "/requests"
_SECTION: Final = "requests"
_BEFORE: Final = Field("before", Text(60), "")
_NO_KEY: Final = "0"
_COUNTED_BY: Final = frozenset({"address", "from", "to"})
_COUNTS: Final = 20  # how many counts of requests without a key are shown
_CLASS_LABELS: Final = {
    "2xx": say("2xx: successful"),
    "3xx": say("3xx: unchanged"),
    "4xx": say("4xx: refused"),
    "5xx": say("5xx: failed"),
}


async def index(request: PageRequest) -> Response:
    """Search the log."""
    asked = dict.fromkeys(route.operation.name for route in build_routes(request.catalogue))
    asked |= dict.fromkeys(
        box.name for box in GrantGrid(request.catalogue).boxes
    )  # also those that an address with a fork leads to
    names = await fetch_key_names(request, request.query.get("key", ""))
    keys = [(number, f"{isolate(name)} ({number})") for number, name in names.items()]
    listed = await fetch_filtered(
        request,
        "requests.list",
        (*FILTERS, _BEFORE),
        choices={
            "key": [("", say("Any key")), (_NO_KEY, say("Without a valid key")), *keys],
            "operation": [("", say("Any operation")), *((name, name) for name in asked)],
            "method": [("", say("Any method")), *((name, name) for name in METHODS)],
            "status": [("", say("Any status")), *_CLASS_LABELS.items(), *_list_statuses(request.query.get("status", ""))],
        },
        labels={
            "method": say("Method"),
            "path": say("Path contains"),
            "slower": say("Slower than (ms)"),
            "from": say("From"),
            "to": say("To"),
        },
    )
    keyless: list[dict[str, Any]] = []
    if listed["status"] == 200 and listed["query"].get("key") == _NO_KEY and "before" not in listed["query"]:
        counted = {name: text for name, text in listed["form"].raw().items() if name in _COUNTED_BY}
        keyless = (await request.fetch("requests.keyless", counted | {"limit": _COUNTS}))["results"]
    names = await add_key_names(request, names, (one["keyId"] for one in listed["found"]["results"]))
    return request.page("requests/index.html", title=say("Requests"), names=names, keyless=keyless, **listed)


def _list_statuses(chosen: str) -> list[tuple[str, str]]:
    common = ["200", "201", "304", "400", "401", "403", "404", "405", "409", "412", "415", "422", "429", "500", "503"]
    return [(one, one) for one in common + ([chosen] if chosen.isdecimal() and chosen not in common else [])]


async def show(request: PageRequest) -> Response:
    """Show one request."""
    found = await request.fetch("requests.get", target=request.number("id"))
    names = await add_key_names(request, {}, [found["keyId"]])
    return request.page(
        "requests/show.html",
        title=say("{method} {path}", method=found["method"], path=found["path"]),
        found=found,
        names=names,
        reference=_reference(request, found["operation"]),
        reason=_find_refusal(request, found["error"]),
        missing=await _find_missing(request, found),
    )


async def _find_missing(request: PageRequest, found: Mapping[str, Any]) -> MissingGrant | None:
    """Return the missing grant because of which a request was refused; None if that was not the reason."""
    number = found["keyId"]
    key = None if number is None else await request.find("keys.get", number)  # the log may have been brought here without its keys
    return None if key is None else find_refused_grant(GrantGrid(request.catalogue), key, found)


def _reference(request: PageRequest, operation: str | None) -> str:
    """Return the address of an operation's entry in the reference, if it has one."""
    if operation == HELLO.name:
        return find_in_reference(HELLO)
    box = GrantGrid(request.catalogue).find(operation or "")
    return box.reference if box else ""


def _find_refusal(request: PageRequest, code: str | None) -> Refusal | None:
    """Find the refusal with an error code, among the codes of all resources, including those that only a dialect has."""
    if not code:
        return None
    codes = {refusal.code: refusal for refusal in REFUSALS.values()}
    for operation in request.catalogue.values():
        its_codes = {message: operation.recode(message) for message in REFUSALS} | dict(operation.refusals)
        for message, its_code in its_codes.items():
            codes.setdefault(its_code, REFUSALS[message])
    for dialect_kind in INVISION.kinds.values():
        for ours, theirs in dialect_kind.codes.items():
            if ours in codes:
                codes.setdefault(theirs, codes[ours])
    return codes.get(code)


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, live=("requests",), needs=("requests.list",)),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION, needs=("requests.get",)),
)
