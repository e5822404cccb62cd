"""API keys: the list, and making one."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.keys.form import KeyForm, tick
from trellis.admin.keys.grants import Grid
from trellis.admin.page import Page, Submitted, Visit
from trellis.core.keys import FILTERS
from trellis.errors import Refused

_HERE: Final = "/keys"
_SECTION: Final = "keys"
_MADE: Final = "This form has made a key already, and what stands in it now is something else. Send it again to make another key."


async def index(visit: Visit) -> Response:
    """List the keys."""
    grid = Grid(visit.house.gate.catalogue)
    query = Submitted(pair for pair in visit.query.items() if pair[1].strip())
    form = _filters(grid, query)
    page: dict[str, Any] = {"results": [], "page": 1, "totalPages": 1, "totalResults": 0}
    status = 200
    try:
        page = (await visit.perform("keys.list", form.raw() | {"order": "newest"})).value
    except Refused as refused:
        form.at_fault(refused)
        status = 400
    return visit.page(
        "keys/index.html", status=status, title="API keys", form=form, page=page, query=dict(query), grid=grid, filtered=bool(query)
    )


def _filters(grid: Grid, query: Submitted) -> Form:
    operations = (("", "Any operation"), *((box.name, box.name) for box in grid.boxes))
    states = (("", "Any state"), ("active", "Active"), ("expired", "Expired"), ("revoked", "Revoked"))
    return Form(
        [field for field in FILTERS if field.name != "order"],
        query,
        choices={"state": states, "operation": operations},
        labels={"search": "Name or public part", "operation": "May do"},
        help=dict.fromkeys(("search", "state", "operation"), ""),
    )


async def new(visit: Visit) -> Response:
    """Show the form for a new key."""
    visit.require_recent_password()
    return _form(visit, 200, KeyForm(Grid(visit.house.gate.catalogue)))


async def create(visit: Visit) -> Response:
    """Make a key and show it, once."""
    visit.require_recent_password()
    form = KeyForm(Grid(visit.house.gate.catalogue), typed=visit.form)
    if tick(visit.form) is not None:
        return _form(visit, 200, form)
    try:
        made = await visit.perform_once("keys.create", form.settings())
    except Refused as refused:
        if refused.status == 422:
            form.title = _MADE
            return _form(visit, 409, form, again=True)
        return _form(visit, 400, form.at_fault(refused))
    return shown_once(visit, made.value, "made")


def _form(visit: Visit, status: int, form: KeyForm, *, again: bool = False) -> Response:
    return visit.page(
        "keys/new.html",
        status=status,
        title="Make an API key",
        form=form,
        grid=form.grid,
        once=visit.once(again=again),
    )


def shown_once(visit: Visit, key: dict[str, Any], how: str) -> Response:
    """Show a key, or, to a form that is sent again, that it was shown. `how` it came to be: made, rotated."""
    title = f"{key['name']}: the new key" if "key" in key else f"{key['name']}: the key was shown already"
    return visit.page("keys/once.html", title=title, key=key, how=how, base=_base(visit), grid=Grid(visit.house.gate.catalogue))


def _base(visit: Visit) -> str:
    """Give the address under which callers reach this service."""
    url = visit.request.url
    return visit.house.settings.public_url or f"{url.scheme}://{url.netloc}"


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/new", new, _SECTION),
    Page("POST", f"{_HERE}/new", create, _SECTION),
)
