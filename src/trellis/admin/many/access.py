"""Giving a group rights in many nodes, and taking them away, on the page of what it can see and do."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.responses import Response

from trellis.admin.forms import split_values
from trellis.admin.many.plan import MOST, OUTDATED, PLAN, Step, carry_out, explain, plan_steps
from trellis.admin.nodes import ACTION, describe_state, fetch_groups, fetch_node, show_missing
from trellis.admin.page import PageRequest
from trellis.core.fields import EVERYONE, isolate
from trellis.core.nodes import NodeKind
from trellis.errors import Refused

_SHOWN: Final = "shown"  # the nodes that were on the page
_SEEN: Final = "_seen"  # the version of the group's rights in them
_MAY: Final = "may."  # before an option: the nodes in which it is ticked


async def run(kind: NodeKind, request: PageRequest) -> Response:
    """Show what would change, or change it, if that is still what the page showed."""
    if (group := await fetch_node(kind, request)) is None:
        return await show_missing(kind, request)
    form = request.form
    about = next((one for one in request.kinds if one.name == form.get("kind", "") and one.options), None)
    query = urlsplit(form.get("_from", "")[:2000]).query
    back = f"/{kind.name}/{group['id']}/access" + (f"?{query}" if query else "")
    if about is None:
        return request.redirect(back)
    problem, plan = "", None
    try:
        ids = sorted({int(one) for one in split_values(form.all(_SHOWN)) if one.isdecimal() and len(one) < 16})
        found = (await request.fetch(about.operation("list"), {"ids": ids, "perPage": MOST}))["results"] if ids else []
        if describe_state(about, found, group["id"]) != form.get(_SEEN, ""):
            problem = "The rights of this group were changed since the page was made. Nothing was changed: go back, and reload it."
        else:
            plan = await plan_steps(request, about, _build_steps(about, request, found, group["id"]), await fetch_groups(request))
            if form.get(ACTION, "") == "do" and plan.count:
                if form.get(PLAN, "") == plan.version:
                    nodes = about.singular if plan.count == 1 else about.title.lower()
                    done = f"What {isolate(group['name'])} may do in {plan.count:,} {nodes} has changed."
                    return await carry_out(request, plan, done, back)
                problem = OUTDATED
    except Refused as refused:
        plan, problem = None, explain(refused)
    return request.page(
        "many/access.html",
        status=409 if problem else 200,
        title=f"Rights of {isolate(group['name'])}",
        kind=about,
        groups=kind,
        group=group,
        plan=plan,
        problem=problem,
        carried=tuple(_carry(about, request)),
        submission=request.submission_token(),
        back=back,
    )


def _build_steps(kind: NodeKind, request: PageRequest, records: Sequence[Mapping[str, Any]], group: int) -> list[Step]:
    """Return a step for each node whose ticks differ from what the group may do there. What every group may do stays."""
    ticked = {option: set(split_values(request.form.all(_MAY + option))) for option in kind.options}
    steps = []
    for record in records:
        changed: dict[str, Any] = {}
        for option in kind.options:
            held = record["permissions"].get(option, [])
            wanted = str(record["id"]) in ticked[option]
            if held != EVERYONE and wanted != (group in held):
                changed[option] = sorted({*held, group}) if wanted else [one for one in held if one != group]
        if changed:
            steps.append(Step(kind.operation("update"), record, {"permissions": changed}))
    return steps


def _carry(kind: NodeKind, request: PageRequest) -> list[tuple[str, str]]:
    """Return the form as it was sent, with one field for each option."""
    names = (_SHOWN, *(_MAY + option for option in kind.options))
    kept = [(name, request.form.get(name, "")) for name in ("kind", "_from", _SEEN)]
    return kept + [(name, ",".join(one for one in split_values(request.form.all(name)) if one)) for name in names]
