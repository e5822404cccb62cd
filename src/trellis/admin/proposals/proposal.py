"""One proposal: what it would delete, move and change, whether it can be approved now, and the decision."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from trellis.admin.events import Effort, MemberChange, event_changes
from trellis.admin.nodes import DeletePlan, describe_deletion, fetch_groups
from trellis.admin.page import Page, PageRequest
from trellis.admin.proposals.deciding import DECISIONS, UNDECIDED, decide, is_cut, is_decided, needs_password, read_reason
from trellis.admin.proposals.index import build_reason
from trellis.admin.structure import describe_plan
from trellis.admin.submitted import ACTION
from trellis.core.nodes import NodeKind
from trellis.core.verbs import Response as Answer
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/proposals/{id:int}"
_SECTION: Final = "proposals"
_SHOWN: Final = 20  # of the events that the call would record
_LONGEST: Final = 4000  # characters of the input
_OUTDATED: Final = "differences"  # the member of a refusal that lists what has changed in the meantime


@dataclass(frozen=True, slots=True)
class ProposedEvent:
    """One event that the call would record, as the event log describes events, and the changes in it."""

    event: Mapping[str, Any]
    changes: tuple[MemberChange, ...]


@dataclass(frozen=True, slots=True)
class ProposalPreview:
    """What a call would do, in one of three forms: the delete of a node, the plan of a document, or its events.

    `kind` is the kind of the node; `more` is how many events are not among the `effects`, and `is_cut` is whether there may be
    further ones, of which nothing is kept.
    """

    kind: NodeKind | None = None
    deletion: DeletePlan | None = None
    plan: Mapping[str, Any] | None = None
    effects: tuple[ProposedEvent, ...] = ()
    more: int = 0
    is_cut: bool = False


async def show(request: PageRequest) -> Response:
    """Show a proposal."""
    return await _show(request, await request.fetch("proposals.get", target=request.number("id")))


async def _show(
    request: PageRequest,
    proposal: Mapping[str, Any],
    status: int = 200,
    *,
    fault: str = "",
    missing: str = "",
    problem: Refused | None = None,
) -> Response:
    is_open = proposal["state"] == "open"
    obstacle = problem or (await _find_obstacle(request, proposal) if is_open and request.actor.may("proposals.approve") else None)
    shown = orjson.dumps(proposal["input"], option=orjson.OPT_INDENT_2).decode() if proposal["input"] else ""
    return await request.large_page(
        "proposals/show.html",
        status=status,
        title=say("Proposal {id:,}", id=proposal["id"]),
        proposal=proposal,
        is_open=is_open,
        preview=await _preview(request, proposal),
        obstacle=obstacle,
        changes=() if obstacle is None else obstacle.facts.get("changes", ()),
        differences=() if obstacle is None else obstacle.facts.get(_OUTDATED, ()),
        reason=build_reason(request, fault),
        missing=missing,
        shown=shown[:_LONGEST],
        cut=max(0, len(shown) - _LONGEST),
    )


async def _find_obstacle(request: PageRequest, proposal: Mapping[str, Any]) -> Refused | None:
    """Return why a proposal could not be approved now, found by a dry run; None if it could be."""
    try:
        await request.dry_run(DECISIONS["approve"].operation, {}, proposal["id"])
    except Refused as refused:
        if refused.status >= 500:
            raise
        return refused
    return None


async def _preview(request: PageRequest, proposal: Mapping[str, Any]) -> ProposalPreview:
    """Describe what the call would do, in the same way as the page for its operation if there is one."""
    operation = request.catalogue.get(proposal["operation"])  # None if it is one of a kind that this community no longer has
    plan, effects = proposal["plan"], proposal["effects"]
    if operation is not None and operation.name in _PLANS and plan:
        return await _PLANS[operation.name](request, plan)
    is_delete = operation is not None and operation.verb is not None and operation.verb.response is Answer.NULL
    if operation is not None and is_delete and operation.kind is not None and plan and effects:
        children = plan["moved"]["ids"]
        record = {**effects[0]["before"], "id": effects[0]["id"]}
        described = await describe_deletion(request, operation.kind, record, plan, children, plan["moved"]["count"])
        return ProposalPreview(kind=operation.kind, deletion=described)
    groups = await fetch_groups(request) if effects else {}
    shown = [{**one, "resourceId": one["id"], "actor": proposal["proposer"]} for one in effects[:_SHOWN]]
    effort = Effort()
    described_effects = tuple(ProposedEvent(one, event_changes(one, request.kinds, groups, effort)) for one in shown)
    return ProposalPreview(effects=described_effects, more=max(0, len(effects) - _SHOWN), is_cut=is_cut(proposal))


async def _preview_plan(request: PageRequest, plan: Mapping[str, Any]) -> ProposalPreview:
    return ProposalPreview(plan=await describe_plan(request, plan))


_PLANS: Final[Mapping[str, Callable[[PageRequest, Mapping[str, Any]], Awaitable[ProposalPreview]]]] = {
    "structure.apply": _preview_plan
}


async def decide_on_one(request: PageRequest) -> Response:
    """Approve or reject a proposal."""
    request.require_fresh_form()
    proposal = await request.fetch("proposals.get", target=request.number("id"))
    decision = DECISIONS.get(request.form.get(ACTION, ""))
    if decision is None:
        return await _show(request, proposal, 400, missing=UNDECIDED)
    reason = read_reason(request)
    if fault := decision.find_fault(reason):
        return await _show(request, proposal, 400, fault=fault)
    if decision.carries_out and needs_password(request, proposal):
        request.require_recent_password()
    try:
        result = await decide(request, decision, proposal["id"], reason)
    except Refused as refused:
        if refused.status >= 500:
            raise
        proposal = await request.fetch("proposals.get", target=proposal["id"])
        if is_decided(request, decision, proposal):
            return request.redirect(f"/proposals/{proposal['id']}", decision.tell(proposal["id"]))
        return await _show(request, proposal, refused.status, problem=refused)
    told = decision.tell(proposal["id"])
    return request.redirect(
        f"/proposals/{proposal['id']}", told, undo=result.value["event"] if _is_undoable(request, result) else None
    )


def _is_undoable(request: PageRequest, result: Any) -> bool:
    """Return whether the decision left exactly one event, about a node, which can be undone by itself."""
    kinds = {kind.name for kind in request.kinds}
    return (
        result.value["event"] is not None and len(result.value["effects"]) == 1 and result.value["effects"][0]["resource"] in kinds
    )


PAGES: Final = (
    Page("GET", _HERE, show, _SECTION, needs=("proposals.get",)),
    Page("POST", _HERE, decide_on_one, _SECTION, needs=("proposals.approve", "proposals.reject")),
)
