"""The decisions on proposals, and how a page carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.page import PageRequest
from trellis.core.fields import Field, Text
from trellis.core.gate import Result
from trellis.core.keys import tidy_reason
from trellis.core.proposals import SHOWN
from trellis.sentences import Sentence, mark, mark_many, say, say_many

UNDECIDED: Final = say("Nothing was decided yet: press Approve or Reject.")  # as after Enter in the reason: it must decide nothing
REASON: Final = Field("reason", Text(500), say("The proposer can read the reason, and it is recorded in the event log."))


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: its operation, the state `done` that it leads to, and whether it `needs_reason` and `carries_out` the call.

    `told` and `told_many` are the messages that one or several proposals were decided on.
    """

    operation: str
    done: str
    told: str
    told_many: tuple[str, str]
    needs_reason: bool = False
    carries_out: bool = False

    def tell(self, number: int) -> Sentence:
        """Return the message that a proposal was approved or rejected."""
        return say(self.told, id=number)

    def tell_many(self, count: int) -> Sentence:
        """Return the message that so many proposals were approved or rejected."""
        return say_many(count, *self.told_many)

    def find_fault(self, reason: str) -> str:
        """Return what is wrong with the reason of the decision; "" if nothing is."""
        return "" if reason or not self.needs_reason else say("Enter a reason, so that the proposer knows why.")


DECISIONS: Final[Mapping[str, Decision]] = {
    "approve": Decision(
        "proposals.approve",
        "approved",
        mark("Proposal {id:,} was approved."),
        mark_many("{count:,} proposal was approved.", "{count:,} proposals were approved."),
        carries_out=True,
    ),
    "reject": Decision(
        "proposals.reject",
        "rejected",
        mark("Proposal {id:,} was rejected."),
        mark_many("{count:,} proposal was rejected.", "{count:,} proposals were rejected."),
        needs_reason=True,
    ),
}


def read_reason(request: PageRequest) -> str:
    """Return the reason that was typed."""
    return tidy_reason(request.form.get(REASON.name, ""))


async def decide(request: PageRequest, decision: Decision, number: int, reason: str) -> Result:
    """Approve or reject a proposal. Raises Refused."""
    return await request.perform(decision.operation, {REASON.name: reason} if reason else {}, number)


def is_decided(request: PageRequest, decision: Decision, proposal: Mapping[str, Any]) -> bool:
    """Return whether the administrator has already made this decision, in which case the form was sent twice."""
    closed_by = proposal["closedBy"]
    return proposal["state"] == decision.done and closed_by is not None and request.actor.is_named(closed_by)


def needs_password(request: PageRequest, proposal: Mapping[str, Any]) -> bool:
    """Return whether the password is required first: if not only nodes would be affected, as on the pages for other records.

    It is required, too, if there may be more effects than are kept.
    """
    kinds = {kind.name for kind in request.kinds}
    return is_cut(proposal) or any(one["resource"] not in kinds for one in proposal["effects"])


def is_cut(proposal: Mapping[str, Any]) -> bool:
    """Return whether a proposal may have more effects than those that are kept with it."""
    return len(proposal["effects"]) >= SHOWN
