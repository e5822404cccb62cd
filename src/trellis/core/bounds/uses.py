"""Counting how often a grant is used in a day, where its bound limits that."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from trellis.core.bounds.bound import WHOLE, Holder, describe_per_day
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Transaction
from trellis.store.keys import uses

_ASK: Final = say("An administrator can change that on the key's page.")


def find_uses(tx: Transaction, key: int, operation: str, at: str) -> int:
    """Return how often a key's grant was used on the day of a time."""
    return uses.find_times(tx, key, operation, at[:10])


def count_uses(tx: Transaction, actor: Holder, operation: str, now: str, times: int = 1) -> None:
    """Count uses of a grant, in the transaction of what it is used for. Raises Refused (GRANT_USED_UP) if too few are left.

    Only if the transaction commits has the grant been used: what is refused or rolled back does not count.
    """
    _count(tx, actor, operation, now, times, say("run {name}", name=operation))


def count_whole(tx: Transaction, actor: Holder, now: str, times: int = 1) -> None:
    """Count uses of any grants against what the actor may do in a day in all, as `count_uses` does for one grant."""
    _count(tx, actor, WHOLE, now, times, say("run operations"))


def _count(tx: Transaction, actor: Holder, operation: str, now: str, times: int, what: str) -> None:
    bound = actor.bounds.get(operation)
    if bound is None or bound.per_day is None or actor.id is None:
        return
    if not uses.take(tx, actor.id, operation, now[:10], bound.per_day, times):
        midnight = datetime.fromisoformat(now[:10]) + timedelta(days=1)
        left = bound.per_day - find_uses(tx, actor.id, operation, now)
        told = {"name": isolate(actor.name), "what": what, "often": describe_per_day(bound.per_day)}
        wait = midnight - datetime.fromisoformat(now).replace(tzinfo=None)
        raise Refused(
            "GRANT_USED_UP",
            _describe_end(told, bound.per_day, times, left),
            facts=({} if operation == WHOLE else {"operation": operation})
            | {"perDay": bound.per_day, "retryAfter": max(1, int(wait.total_seconds()) + 1)},
        )


def _describe_end(told: Mapping[str, str], per_day: int, times: int, left: int) -> str:
    """Say why a grant cannot be used so many `times` more today. `told` are the name of its key, what it is for, and how often."""
    if per_day == 0:
        return say("The key '{name}' may never {what}: its limit is {often}. {ask}", ask=_ASK, **told)
    if left > 0:
        return say(
            "The key '{name}' may {what} {often}. This needs {times:,}, and {left:,} are left today. The next day begins at "
            "midnight UTC.",
            times=times,
            left=left,
            **told,
        )
    return say("The key '{name}' may {what} {often}, and has already done so today. The next day begins at midnight UTC.", **told)
