"""Actions on the nodes that were ticked in a tree or list: a form for each action, its dry run, and then the change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.forms import Form, read_ids
from trellis.admin.many.actions import ACTIONS, Action, build_fields
from trellis.admin.many.plan import (
    BATCHED,
    BatchPlan,
    find_done,
    find_way_back,
    leave_out_nested,
    plan_batch,
    plan_or_carry_out,
    read_former_address,
    tell_limit,
)
from trellis.admin.nodes import Picker, build_picker, fetch_groups, has_new_search
from trellis.admin.page import PageRequest
from trellis.admin.submitted import ACTION
from trellis.core.catalogue import Catalogue
from trellis.core.fields import EVERYONE, isolate
from trellis.core.nodes import NodeKind
from trellis.core.paging import MOST_PER_PAGE
from trellis.sentences import say

IDS: Final = "ids"


@dataclass(frozen=True, slots=True)
class Selection:
    """The ticked nodes in their order, without nodes that go along with another one because they are below it.

    `ids` also includes the ids of the nodes that were left out. `kept` are the names of ticked nodes that cannot be deleted.
    """

    records: tuple[Mapping[str, Any], ...]
    ids: tuple[int, ...]
    kept: tuple[str, ...]
    pickers: Mapping[str, Picker]

    @property
    def inside(self) -> int:
        """The number of nodes that were left out because they go along with others."""
        return len(self.ids) - len(self.records)


def find_many_actions(catalogue: Catalogue, kind: NodeKind) -> tuple[Action, ...]:
    """Return the actions on many nodes of a kind: those whose operation a batch may run on each node."""
    named = ((action, catalogue.get(kind.operation(action.verb))) for action in ACTIONS if action.fits(kind))
    return tuple(action for action, operation in named if operation is not None and operation.path is not None)


async def index(kind: NodeKind, request: PageRequest) -> Response:
    """Redirect to the tree or list, where nodes are ticked."""
    return request.redirect(f"/{kind.name}")


async def run(action: Action, kind: NodeKind, request: PageRequest) -> Response:
    """Show the form of an action with its plan, or carry the plan out if it is still the one that the page showed."""
    back, describe = find_way_back(request, f"/{kind.name}"), partial(action.describe, kind, request.form)
    if (done := await find_done(request, describe, back)) is not None:
        return done
    ids = read_ids(request.form.all(IDS))
    if len(ids) > MOST_PER_PAGE:  # more than can be read at once
        return request.redirect(back, tell_limit(kind), "note")
    chosen = await _select(action, kind, request, ids)
    if not chosen.records:
        request.require_fresh_form()
        message = (
            say("{kept} is built in and cannot be deleted.", kept=isolate(chosen.kept[0]))
            if chosen.kept
            else say("Tick at least one node first.")
        )
        return request.redirect(back, message, "note")
    groups = await fetch_groups(request)
    sent = request.form.get(ACTION, "")
    is_search = has_new_search(request.form, chosen.pickers)
    is_planned = sent == "do" or (sent == "plan" and not is_search) or not (sent or action.asks)

    async def make_plan() -> BatchPlan | None:
        if not is_planned:
            return None
        bodies = await action.build_bodies(request, kind, chosen.records, groups)
        return replace(await plan_batch(request, kind, action.verb, bodies, groups), reason=request.reason)

    context = {
        "title": say(action.title, nodes=kind.counted(len(chosen.records))),
        "kind": kind,
        "action": action,
        "chosen": chosen,
        "group_choices": [(EVERYONE, say("Every group")), *((str(number), name) for number, name in groups.items())],
        "form": build_fields(kind, request.form, chosen.records) if action.sets_fields else None,
        "came_from": read_former_address(request),
    }
    operation = request.catalogue.find(kind.operation(action.verb))
    form = Form(operation.fields, labels={"parentId": say("Under"), "position": say("Where")})
    return await plan_or_carry_out(request, make_plan, describe, back, "many/selection.html", context, replace(BATCHED, form=form))


async def _select(action: Action, kind: NodeKind, request: PageRequest, ids: Sequence[int]) -> Selection:
    """Read the ticked nodes, without nodes that no longer exist or that go along with another one because they are below it."""
    found: Sequence[Mapping[str, Any]] = ()
    if ids:
        found = (await request.fetch(kind.operation("list"), {"ids": ids, "perPage": MOST_PER_PAGE}))["results"]
    by_id = {record["id"]: record for record in found}
    records = [by_id[number] for number in ids if number in by_id]
    kept = tuple(record["name"] for record in records if action.deletes and record["id"] in kind.built_in)
    records = [record for record in records if not (action.deletes and record["id"] in kind.built_in)]
    ticked = tuple(record["id"] for record in records)
    if action.takes_along and not (action.along and request.form.get(action.along) == "0"):
        records = await leave_out_nested(request, kind, records)
    hidden = [record["id"] for record in records] if action.moves else ()
    pickers = {
        name: await build_picker(
            request,
            kind,
            name,
            request.form.get(name, ""),
            label=label,
            none=none if kind.tree else "",
            parents=parents,
            exclude=hidden,
        )
        for name, label, none, parents in action.list_pickers(kind)
    }
    return Selection(tuple(records), ticked, kept, pickers)
