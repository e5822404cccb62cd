"""API keys: the list, and creating one."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.confirm import create_once
from trellis.admin.forms import Form
from trellis.admin.keys.clients import PLACEHOLDER, build_snippets
from trellis.admin.keys.form import KeyForm, pressed_button
from trellis.admin.keys.grants import Grid
from trellis.admin.keys.presets import fetch_running
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.fields import isolate
from trellis.core.keys import FILTERS, PRESET, PRESETS
from trellis.errors import Refused

_HERE: Final = "/keys"
_SECTION: Final = "keys"
_MAX_NAMES: Final = 200


async def index(request: PageRequest) -> Response:
    """List the keys."""
    grid = Grid(request.catalogue)
    query = Submitted(pair for pair in request.query.items() if pair[1].strip())
    form = _filters(grid, query)
    page: dict[str, Any] = {"results": [], "page": 1, "totalPages": 1, "totalResults": 0}
    status = 200
    try:
        page = await request.fetch("keys.list", form.raw() | {"order": "newest"})
    except Refused as refused:
        form.add_refusal(refused)
        status = 400
    return request.page(
        "keys/index.html",
        status=status,
        title="API keys",
        form=form,
        page=page,
        query=dict(query),
        grid=grid,
        filtered=bool(query),
        running=await fetch_running(request),
    )


def _filters(grid: Grid, query: Submitted) -> Form:
    operations = (("", "Any operation"), *((box.name, box.name) for box in grid.boxes))
    states = (("", "Any state"), ("active", "Active"), ("paused", "Paused"), ("expired", "Expired"), ("revoked", "Revoked"))
    return Form(
        [field for field in FILTERS if field.name not in {"order", PRESET.name}],
        query,
        choices={"state": states, "operation": operations},
        labels={"search": "Name, owner or public part", "operation": "May do"},
        help=dict.fromkeys(("search", "state", "operation"), ""),
    )


async def new(request: PageRequest) -> Response:
    """Show the form for a new key."""
    request.require_recent_password()
    return _show_form(request, KeyForm(Grid(request.catalogue), preset=request.query.get(PRESET.name, "")), 200)


async def create(request: PageRequest) -> Response:
    """Create a key and show it, once."""
    request.require_recent_password()
    form = KeyForm(Grid(request.catalogue), typed=request.form, preset=request.form.get(PRESET.name, ""))
    if pressed_button(request.form) is not None:
        return _show_form(request, form, 200)
    show = partial(_show_form, request, form)
    return await create_once(request, "keys.create", form, show, lambda key: show_secret(request, key, "created"))


def _show_form(request: PageRequest, form: KeyForm, status: int) -> Response:
    return request.page(
        "keys/new.html",
        status=status,
        title="Create an API key",
        form=form,
        grid=form.grid,
        presets=PRESETS,
        preset=next((name for name, one in PRESETS.items() if one is form.preset), ""),
        submission=request.submission_token(renew=status == 409),
    )


def show_secret(request: PageRequest, key: Mapping[str, Any], how: str) -> Response:
    """Show a new key, or, to a form that is sent again, that it was shown before. `how` it was made: created, rotated."""
    title = f"{isolate(key['name'])}: the new key" if "key" in key else f"{isolate(key['name'])}: the key was shown before"
    base = find_base(request)
    snippets = build_snippets(base, key.get("key", PLACEHOLDER))
    return request.page(
        "keys/secret.html",
        title=title,
        key=key,
        how=how,
        base=base,
        address=f"{base}/mcp",
        snippets=snippets,
        grid=Grid(request.catalogue),
    )


def find_base(request: PageRequest) -> str:
    """Return the address at which callers reach this service."""
    url = request.http.url
    return request.runner.settings.public_url or f"{url.scheme}://{url.netloc}"


async def fetch_key_names(request: PageRequest) -> dict[int, str]:
    """Return the names of the newest keys, by id."""
    found = await request.fetch("keys.list", {"perPage": _MAX_NAMES, "order": "newest"})
    return {key["id"]: key["name"] for key in found["results"]}


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/new", new, _SECTION),
    Page("POST", f"{_HERE}/new", create, _SECTION),
)
