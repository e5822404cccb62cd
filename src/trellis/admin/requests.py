"""The API log: every request to the API, searched; one of them with its error and what it did."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin.filters import filters, key_names
from trellis.admin.forms import Form
from trellis.admin.keys import REFERENCE, Grid
from trellis.admin.page import Page, Submitted, Visit
from trellis.core.fields import Field, Text
from trellis.core.hello import HELLO
from trellis.core.requests import CLASSES, FILTERS, METHODS
from trellis.errors import Refused
from trellis.refusals import REFUSALS, Refusal

_HERE: Final = "/requests"
_SECTION: Final = "requests"
_BEFORE: Final = Field("before", Text(60), "")
_CLASS_WORDS: Final = {"2xx": "answered", "3xx": "unchanged", "4xx": "refused", "5xx": "failed"}


async def index(visit: Visit) -> Response:
    """Search the log."""
    query = filters(visit)
    names = await key_names(visit)
    form = _form(visit, query, names)
    found: dict[str, Any] = {"results": [], "next": None, "searchedTo": None, "about": 0}
    status = 200
    try:
        found = (await visit.perform("requests.list", form.raw(), slow=True)).value
    except Refused as refused:
        form.at_fault(refused)
        status = 400
    return visit.page(
        "requests/index.html",
        status=status,
        title="Requests",
        form=form,
        found=found,
        names=names,
        query=dict(query),
        filtered=bool(set(query) - {"before"}),
    )


def _form(visit: Visit, query: Submitted, names: dict[int, str]) -> Form:
    grid = Grid(visit.house.gate.catalogue)
    keys = [(number, f"{name} ({number})") for number, name in names.items()]
    return Form(
        (*FILTERS, _BEFORE),
        query,
        choices={
            "key": [("", "Any key"), ("0", "Without a good key"), *keys],
            "operation": [("", "Any operation"), *((box.name, box.name) for box in grid.boxes), (HELLO.name, HELLO.name)],
            "method": [("", "Any method"), *((name, name) for name in METHODS)],
            "status": [("", "Any status"), *((name, f"{name}: {_CLASS_WORDS[name]}") for name in CLASSES), *_statuses(query)],
        },
        labels={"path": "Path holds", "slower": "Slower than (ms)", "from": "From (UTC)", "to": "To (UTC)"},
        help=dict.fromkeys((field.name for field in (*FILTERS, _BEFORE)), ""),
    )


def _statuses(query: Submitted) -> list[tuple[str, str]]:
    usual = ["200", "201", "304", "400", "401", "403", "404", "405", "409", "412", "415", "422", "429", "500", "503"]
    chosen = query.get("status", "")
    return [(one, one) for one in usual + ([chosen] if chosen.isdecimal() and chosen not in usual else [])]


async def show(visit: Visit) -> Response:
    """Show one request."""
    found = (await visit.perform("requests.get", target=visit.number("id"))).value
    names = await key_names(visit)
    return visit.page(
        "requests/show.html",
        title=f"{found['method']} {found['path']}",
        found=found,
        names=names,
        reference=_reference(visit, found["operation"]),
        reason=_meaning(visit, found["error"]),
    )


def _reference(visit: Visit, operation: str | None) -> str:
    """Give the address of an operation's entry in the reference, if it has one."""
    if operation == HELLO.name:
        return f"{REFERENCE}#{operation}"
    box = Grid(visit.house.gate.catalogue).box(operation or "")
    return box.reference if box else ""


def _meaning(visit: Visit, code: str | None) -> Refusal | None:
    """Find what an error code stands for: those of the table, and those that a resource has for itself."""
    if not code:
        return None
    codes = {refusal.code: refusal for refusal in REFUSALS.values()}
    for operation in visit.house.gate.catalogue.values():
        own = {message: operation.recode(message) for message in REFUSALS} | dict(operation.refusals)
        for message, its in own.items():
            codes.setdefault(its, REFUSALS[message])
    return codes.get(code)


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION),
)
