"""How the gate judges calls by the bounds of their grants: whether these have ended, or allow only dry runs or proposals."""

from collections.abc import Sequence
from typing import NamedTuple

from trellis.core.bounds.bound import ASK, Bound, Holder
from trellis.core.bounds.uses import Use, record_uses
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Transaction


class ProposalNeeded(Exception):
    """Raised if a call runs an operation that its key may only propose.

    It is not a refusal, since code that catches refusals of inner calls must not catch it. `operation` is the operation that has to
    be approved: that of the call, or one that it runs.
    """

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation


class Broken(NamedTuple):
    """A condition of a bound that a call does not meet: the member of the bound, the message of the refusal, and the reason.

    The message is None if the call is not refused, but has to be approved.
    """

    condition: str
    message: str | None
    detail: str


def find_broken_condition(bound: Bound, operation: str, at: str, *, writes: bool, dry: bool) -> Broken | None:
    """Return the first condition of a bound that a call would not meet at a time; None if there is none.

    `under` and `per_day` are not checked.
    """
    if bound.has_ended(at):
        return Broken(
            "until", "GRANT_ENDED", say("its grant of {operation} ended at {until}", operation=operation, until=bound.until)
        )
    if bound.dry_run_only and writes and not dry:
        return Broken(
            "dryRunOnly",
            "DRY_RUN_ONLY",
            say("it may run {operation} only as a dry run: send dryRun, and nothing is kept", operation=operation),
        )
    if bound.is_proposed and writes and not dry:
        return Broken("level", None, say("it may only propose {operation}, and somebody else has to approve", operation=operation))
    return None


def judge_end(actor: Holder, operation: str, now: str) -> None:
    """Refuse a grant that has ended. Raises Refused (GRANT_ENDED)."""
    bound = actor.bounds.get(operation)
    if bound is not None and bound.has_ended(now):
        raise Refused(
            "GRANT_ENDED",
            say(
                "The grant of {operation} to the key '{name}' ended at {until}. {ask}",
                operation=operation,
                name=isolate(actor.name),
                until=bound.until,
                ask=ASK,
            ),
            facts={"missingOperation": operation, "endedAt": bound.until},
        )


def refuse_not_granted(actor: Holder, missing: str, named: str = "", *, can_be: bool = True) -> Refused:
    """Return the refusal of a call that its key has not been granted. `named` describes what is missing, if not one operation.

    `can_be` says whether a key can be granted it at all.
    """
    if not can_be:
        detail = say("No key can be granted {named}. An administrator can do this in the panel or at the terminal.", named=missing)
        return Refused("NO_PERMISSION", detail, facts={"missingOperation": missing})
    named = named or missing
    typed = f"'{missing}'" if "*" in missing else missing
    return Refused(
        "NO_PERMISSION",
        say(
            "The key '{name}' has not been granted {named}. An administrator can tick {named} on the key's "
            "page, or run: trellis keys grant {id} {typed}",
            name=isolate(actor.name),
            named=named,
            id=actor.id,
            typed=typed,
        ),
        facts={"missingOperation": missing},
    )


def judge_calls(tx: Transaction, actor: Holder, grants: Sequence[str], times: int, now: str, *, approved: bool | None) -> list[Use]:
    """Judge calls of one operation by the bounds of the grants that it needs; count them as uses of the grants and return these.

    `approved` is None for calls whose changes are not kept, and true for calls that somebody else has to approve or has approved.
    Raises Refused (GRANT_ENDED, DRY_RUN_ONLY, GRANT_USED_UP) or ProposalNeeded.
    """
    for name in grants:
        judge_end(actor, name, now)  # it may have ended while the call waited for its turn
        if approved is not None:
            _judge_write(actor, name, approved=approved)
    return record_uses(tx, actor, grants, now, times)


def _judge_write(actor: Holder, operation: str, *, approved: bool) -> None:
    """Judge whether a write may be kept. Raises Refused (DRY_RUN_ONLY) or ProposalNeeded."""
    bound = actor.bounds.get(operation)
    if bound is None:
        return
    if bound.dry_run_only:
        raise Refused(
            "DRY_RUN_ONLY",
            say(
                "The key '{name}' may run {operation} only as a dry run. Send dryRun=1 to see what it would do. {ask}",
                name=isolate(actor.name),
                operation=operation,
                ask=ASK,
            ),
            facts={"operation": operation},
        )
    if bound.is_proposed and not approved:
        raise ProposalNeeded(operation)
