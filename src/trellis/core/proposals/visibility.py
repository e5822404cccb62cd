"""Which proposals a caller may see: its own, or all of them if it may decide on proposals."""

from collections.abc import Iterator
from typing import Final

from trellis.core.actor import Actor
from trellis.core.fields import invalid_id
from trellis.core.operation import Call, Context
from trellis.core.proposals.verbs import APPROVE, REJECT
from trellis.sentences import say
from trellis.store import proposals
from trellis.store.proposals import Proposal

_DECIDING: Final = (f"proposals.{APPROVE.name}", f"proposals.{REJECT.name}")


def sees_all(context: Context) -> bool:
    """Return whether the caller may see the proposals of others."""
    actor = context.call.actor
    return actor.grants is None or actor.type in ("service", "admin") or any(actor.may_at(name, context.now) for name in _DECIDING)


def is_own(context: Context, proposal: Proposal) -> bool:
    """Return whether the caller has made a proposal."""
    actor = context.call.actor
    return (actor.type, actor.id or 0) == (proposal.actor_type, proposal.actor_id)


def is_decided_by_proposer(context: Context, proposal: Proposal) -> bool:
    """Return whether a proposal was made by one of those who decide on it. The terminal may always decide."""
    deciding = _list_deciding(context.call)
    return any((one.type, one.id) == (proposal.actor_type, proposal.actor_id) for one in deciding if one.id is not None)


def _list_deciding(call: Call) -> Iterator[Actor]:
    """Yield the caller who decides on a proposal, whoever approved this decision, and so on."""
    yield call.actor
    approval = call.approval
    while approval is not None:
        yield approval.by
        approval = approval.needed


def find_visible(context: Context, code: str) -> Proposal:
    """Return the proposal that a call targets. Raises Refused (INVALID_ID) if it does not exist, or may not be seen."""
    proposal = proposals.find(context.tx, context.call.target or 0)
    if proposal is None or not (sees_all(context) or is_own(context, proposal)):
        raise invalid_id(say("proposal"), context.call.target, code)
    return proposal
