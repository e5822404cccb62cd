"""The decisions on proposals, and how a page carries them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.admin.page import PageRequest
from trellis.core.fields import Field, Text
from trellis.core.gate import Result
from trellis.core.keys import tidy_reason
from trellis.core.proposals import SHOWN
from trellis.sentences import Sentence, say, say_many

UNDECIDED: Final = say("Nothing was decided yet: press Approve or Reject.")  # as after Enter in the reason: it must decide nothing
REASON: Final = Field("reason", Text(500), say("The proposer can read the reason, and it is recorded in the event log."))


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision: its operation, the state `done` that it leads to, and whether it `needs_reason` and `carries_out` the call."""

    operation: str
    done: str
    needs_reason: bool = False
    carries_out: bool = False

    def tell(self, number: int) -> Sentence:
        """Return the message that a proposal was approved or rejected."""
        if self.carries_out:
            return say("Proposal {id:,} was approved.", id=number)
        return say("Proposal {id:,} was rejected.", id=number)

    def tell_many(self, count: int) -> Sentence:
        """Return the message that so many proposals were approved or rejected."""
        if self.carries_out:
            return say_many(count, "{count:,} proposal was approved.", "{count:,} proposals were approved.")
        return say_many(count, "{count:,} proposal was rejected.", "{count:,} proposals were rejected.")


DECISIONS: Final[Mapping[str, Decision]] = {
    "approve": Decision("proposals.approve", "approved", carries_out=True),
    "reject": Decision("proposals.reject", "rejected", needs_reason=True),
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
