"""Changing the rights of a group in many nodes, on the page that shows what the group can see and do."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.forms import read_ids, split_values
from trellis.admin.many.plan import FROM, BatchPlan, Bodies, find_done, find_way_back, plan_batch, plan_or_carry_out
from trellis.admin.nodes import describe_state, fetch_groups
from trellis.admin.page import PageRequest
from trellis.core.fields import EVERYONE, isolate
from trellis.core.nodes import NodeKind
from trellis.core.paging import MOST_PER_PAGE
from trellis.errors import Refused
from trellis.sentences import say

_SHOWN: Final = "shown"  # the nodes that were on the page
_SEEN: Final = "_seen"  # the version of the group's rights in them
_CHANGED: Final = say(
    "The rights of this group have changed since the page was loaded. Nothing was saved: go back and reload the page."
)
_MAY: Final = "may."  # before an option: the nodes in which it is ticked


async def run(kind: NodeKind, request: PageRequest, group: Mapping[str, Any]) -> Response:
    """Show the plan, or carry it out if it is still the one that the page showed."""
    form = request.form
    about = next((one for one in request.kinds if one.name == form.get("kind", "") and one.options), None)
    back = find_way_back(request, f"/{kind.name}/{group['id']}/access")
    if about is None:
        request.require_fresh_form()
        return request.redirect(back)

    def describe(count: int) -> str:
        return say("What {name} may do in {nodes} has changed.", name=isolate(group["name"]), nodes=about.counted(count))

    if (done := await find_done(request, describe, back)) is not None:
        return done
    ids = read_ids(form.all(_SHOWN))
    found = (await request.fetch(about.operation("list"), {"ids": ids, "perPage": MOST_PER_PAGE}))["results"] if ids else []

    async def make_plan() -> BatchPlan:
        if describe_state(about, found, group["id"]) != form.get(_SEEN, ""):
            raise Refused("PRECONDITION_FAILED", _CHANGED)
        bodies = _build_bodies(about, request, found, group["id"])
        return await plan_batch(request, about, "update", bodies, await fetch_groups(request))

    context = {
        "title": say("Rights of {name}", name=isolate(group["name"])),
        "kind": about,
        "groups": kind,
        "group": group,
        "carried": _carry(about, request),
    }
    return await plan_or_carry_out(request, make_plan, describe, back, "many/access.html", context)


def _build_bodies(kind: NodeKind, request: PageRequest, records: Sequence[Mapping[str, Any]], group: int) -> Bodies:
    """Return what to change in nodes whose ticks differ from the group's rights there. Rights of every group stay as they are."""
    ticked = {option: set(split_values(request.form.all(_MAY + option))) for option in kind.options}
    bodies = []
    for record in records:
        changed: dict[str, Any] = {}
        for option in kind.options:
            held = record["permissions"].get(option, [])
            wanted = str(record["id"]) in ticked[option]
            if held != EVERYONE and wanted != (group in held):
                changed[option] = sorted({*held, group}) if wanted else [one for one in held if one != group]
        if changed:
            bodies.append((record, {"permissions": changed}))
    return bodies


def _carry(kind: NodeKind, request: PageRequest) -> list[tuple[str, str]]:
    """Return the form as it was sent, with one field for each option."""
    names = (_SHOWN, *(_MAY + option for option in kind.options))
    kept = [(name, request.form.get(name, "")) for name in ("kind", FROM, _SEEN)]
    return kept + [(name, ",".join(one for one in split_values(request.form.all(name)) if one)) for name in names]
