"""Pausing all keys of a preset: a page that lists the keys and then pauses them."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.keys.form import build_reason_form
from trellis.admin.page import Page, PageRequest
from trellis.core.keys import PRESET, PRESETS, WHY_PAUSED
from trellis.errors import Refused
from trellis.sentences import say, say_many

_PAUSE: Final = "keys.pause_preset"
_PATH: Final = "/keys/presets/{preset}/pause"
_SECTION: Final = "keys"
_SHOWN: Final = 20  # keys that are listed by name


async def fetch_running(request: PageRequest) -> list[tuple[str, str]]:
    """Return the name of each preset that has active keys, with the text of the button that pauses them."""
    found: list[tuple[str, str]] = []
    for name, preset in PRESETS.items():
        listed = await request.fetch("keys.list", {PRESET.name: name, "state": "active", "perPage": 1})
        found += [(name, preset.pause)] if listed["totalResults"] else []
    return found


async def ask(request: PageRequest, form: Form | None = None) -> Response:
    """Show which keys would be paused."""
    preset, form = _read_preset(request), form or build_reason_form((WHY_PAUSED,), None)
    plan = await request.dry_run(_PAUSE, {PRESET.name: preset}, None)
    named: list[Any] = [await request.fetch("keys.get", target=number) for number in plan["keys"][:_SHOWN]]
    return request.page(
        "keys/pause_preset.html",
        title=PRESETS[preset].pause,
        form=form,
        count=plan["count"],
        named=named,
    )


async def pause(request: PageRequest) -> Response:
    """Pause the keys."""
    preset, form = _read_preset(request), build_reason_form((WHY_PAUSED,), request.form)
    try:
        raw = form.raw()
        result = await request.perform_once(_PAUSE, {**raw, PRESET.name: preset}, reason=raw.get(WHY_PAUSED.name))
    except Refused as refused:
        return await ask(request, form.add_refusal(refused))
    count = result.value["count"]
    if not count:
        return request.redirect("/keys", say("There were no keys left to pause."), "note")
    told = say_many(
        count,
        "{count:,} key is paused. Its requests are refused from now on.",
        "{count:,} keys are paused. Their requests are refused from now on.",
    )
    return request.redirect("/keys?state=paused", told)


def _read_preset(request: PageRequest) -> str:
    name = str(request.http.path_params[PRESET.name])
    if name not in PRESETS:
        raise Refused("INVALID_ID", say("There is no preset called {name}.", name=name[:60]))
    return name


PAGES: Final = (
    Page("GET", _PATH, ask, _SECTION, needs=(_PAUSE,)),
    Page("POST", _PATH, pause, _SECTION, needs=(_PAUSE,)),
)
