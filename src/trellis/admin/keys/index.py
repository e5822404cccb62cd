"""API keys: the list, and creating one."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.chart import build_use_line
from trellis.admin.filters import fetch_filtered
from trellis.admin.forms import read_id, read_ids
from trellis.admin.keys.clients import PLACEHOLDER, build_snippets
from trellis.admin.keys.form import KeyForm, pressed_button
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.many import find_key_actions
from trellis.admin.keys.presets import fetch_running
from trellis.admin.keys.recipes import RECIPES, describe_copy
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import find_last_page
from trellis.core.fields import isolate
from trellis.core.keys import FILTERS, MOST, PRESET
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/keys"
_SECTION: Final = "keys"
_MAX_NAMES: Final = 200
_DAYS: Final = 14  # covered by the usage line of a key
_RECIPE: Final = "recipe"  # in the address of the form: the recipe that it begins with
_COPY: Final = "copy"  # in the address of the form: the id of a key to copy
_OF: Final = "of"  # in the address of the description: the id of the key that the form changes
_STATES: Final = (
    ("", say("Any state")),
    ("active", say("Active")),
    ("paused", say("Paused")),
    ("expired", say("Expired")),
    ("revoked", say("Revoked")),
)


async def index(request: PageRequest) -> Response:
    """List the keys."""
    grid = GrantGrid(request.catalogue)
    listed = await fetch_filtered(
        request,
        "keys.list",
        [field for field in FILTERS if field.name not in {"order", PRESET.name}],
        choices={"state": _STATES, "operation": [("", say("Any operation")), *((box.name, box.name) for box in grid.boxes)]},
        labels={"search": say("Name, owner or key"), "operation": say("May do")},
        adjust=lambda raw: {**raw, "order": "newest"},
    )
    if (last := find_last_page(request.query, listed["found"])) is not None:
        return request.redirect(_HERE + last)
    ids = [one["id"] for one in listed["found"]["results"]]
    uses = await request.fetch("requests.daily", {"keys": ids, "days": _DAYS, "zone": request.clock.name}) if ids else {}
    return request.page(
        "keys/index.html",
        title=say("API keys"),
        grid=grid,
        running=await fetch_running(request),
        uses={number: build_use_line(counts) for number, counts in uses.items()},
        days=_DAYS,
        many=find_key_actions(request),
        most=MOST,
        **listed,
    )


async def new(request: PageRequest) -> Response:
    """Show the form for a new key: empty, or filled in from a recipe or another key."""
    form, begun = await _begin(request, GrantGrid(request.catalogue))
    return await _show_form(request, form, begun)


async def _begin(request: PageRequest, grid: GrantGrid) -> tuple[KeyForm, str]:
    """Return the form, and the name of the recipe that it begins with or the id of the key that it copies; "" if neither."""
    if copied := read_id(request.query.get(_COPY, "")):
        key = await request.fetch("keys.get", target=copied)
        begun = describe_copy(key, request.now, grid.names.__contains__)
        return KeyForm(grid, preset=key["preset"] or "", begun=begun, clock=request.clock), str(key["id"])
    named = request.query.get(PRESET.name) or request.query.get(_RECIPE, "")
    if (recipe := RECIPES.get(named)) is None:
        return KeyForm(grid, clock=request.clock), ""
    return KeyForm(grid, preset=recipe.preset, begun=recipe.describe(grid), clock=request.clock), named


async def create(request: PageRequest) -> Response:
    """Create a key and show it, once."""
    form = KeyForm(GrantGrid(request.catalogue), typed=request.form, clock=request.clock)
    if pressed_button(request.form) is not None:
        return await _show_form(request, form, form.preset)
    try:
        created = await request.perform_once("keys.create", form.settings())
    except Refused as refused:
        return await _show_form(request, form.add_refusal(refused), form.preset)
    return show_secret(request, created.value, "created")


async def _show_form(request: PageRequest, form: KeyForm, begun: str) -> Response:
    return request.page(
        "keys/new.html",
        title=say("Create an API key"),
        form=form,
        recipes=RECIPES,
        begun=begun,
        names=await fetch_key_names(request),
    )


async def describe(request: PageRequest) -> Response:
    """Describe, for a script, what the key will be able to do with the values that are in its form now."""
    request.require_fresh_form()
    number = read_id(request.query.get(_OF, ""))
    key = await request.fetch("keys.get", target=number) if number else None
    form = KeyForm(GrantGrid(request.catalogue), key=key, typed=request.form, clock=request.clock)
    return request.page("keys/abilities.html", form=form)


def show_secret(request: PageRequest, key: Mapping[str, Any], how: str) -> Response:
    """Show a new key; if the form is sent again, show that the key has been shown before. `how` is "created" or "rotated"."""
    title = (
        say("{name}: the new key", name=isolate(key["name"]))
        if "key" in key
        else say("{name}: the key has already been shown", name=isolate(key["name"]))
    )
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
        grid=GrantGrid(request.catalogue),
    )


def find_base(request: PageRequest) -> str:
    """Return the address at which callers reach this service."""
    url = request.http.url
    return request.runner.settings.public_url or f"{url.scheme}://{url.netloc}"


async def fetch_key_names(request: PageRequest, chosen: str = "") -> dict[int, str]:
    """Return the names by id of the newest keys, and of the key whose id is chosen; empty for a role that may not list keys."""
    if not request.actor.may("keys.list"):
        return {}
    found = (await request.fetch("keys.list", {"perPage": _MAX_NAMES, "order": "newest"}))["results"]
    return await add_key_names(request, {key["id"]: key["name"] for key in found}, read_ids([chosen])[:1])


async def add_key_names(request: PageRequest, names: dict[int, str], ids: Iterable[int | None]) -> dict[int, str]:
    """Return names of keys by id, and those of the keys with these ids; none of them for a role that may not list keys."""
    missing = [one for one in dict.fromkeys(ids) if one is not None and one not in names]
    if not missing or not request.actor.may("keys.list"):
        return names
    found = (await request.fetch("keys.list", {"ids": missing, "perPage": len(missing)}))["results"]
    return names | {key["id"]: key["name"] for key in found}


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, needs=("keys.list",)),
    Page("GET", f"{_HERE}/new", new, _SECTION, needs=("keys.create",), confirms=True),
    Page("POST", f"{_HERE}/new", create, _SECTION, needs=("keys.create",), confirms=True),
    Page("POST", f"{_HERE}/describe", describe, _SECTION, needs=("keys.create",)),
)
