"""Counts how often a grant is used in a day, if its bound limits that."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import NamedTuple

from trellis.core.bounds.bound import ASK, WHOLE, Holder, describe_per_day
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Store, Transaction
from trellis.store.keys import uses


class Use(NamedTuple):
    """Uses of a grant, or of all grants together (WHOLE), that were counted on a day."""

    grant: str
    day: str
    times: int

    def count_again(self, tx: Transaction, actor: Holder) -> None:
        """Count these uses of an actor's grant again after they were rolled back."""
        uses.reserve(tx, actor.id or 0, self.grant, self.day, actor.bounds[self.grant].per_day or 0, self.times)

    def take_off(self, tx: Transaction, actor: Holder) -> None:
        """Subtract these uses of an actor's grant again."""
        uses.take_off(tx, actor.id or 0, self.grant, self.day, self.times)


def find_uses(tx: Transaction, key: int, operation: str, at: str) -> int:
    """Return how often a key's grant was used on the day of the timestamp `at`."""
    return uses.find_times(tx, key, operation, at[:10])


def record_uses(tx: Transaction, actor: Holder, grants: Sequence[str], now: str, times: int = 1) -> list[Use]:
    """Count and return uses of each of some grants, and of all grants together, in the transaction that they are used for.

    Calls that are refused or rolled back do not count, since the counts are written only if the transaction commits.
    Raises Refused (GRANT_USED_UP) if too few uses are left.
    """
    if not grants:
        return []
    for name in grants:
        _count(tx, actor, name, now, times, say("run {name}", name=name))
    _count(tx, actor, WHOLE, now, times, say("run operations"))
    return [
        Use(name, now[:10], times) for name in (*grants, WHOLE) if (bound := actor.bounds.get(name)) and bound.per_day is not None
    ]


@contextmanager
def counting(store: Store, actor: Holder) -> Iterator[list[Use]]:
    """Yield a list for uses that are counted inside. If the block raises an exception, subtract the uses in the list again."""
    counted: list[Use] = []
    try:
        yield counted
    except Exception:
        if counted:
            with suppress(Refused):  # if nothing can be written, the first refusal says what was wrong
                store.write(lambda tx: take_off(tx, actor, counted), quiet=True).result()
        raise


def take_off(tx: Transaction, actor: Holder, counted: Iterable[Use]) -> None:
    """Subtract uses of an actor's grants again, since what they were counted for is refused after all."""
    for use in counted:
        use.take_off(tx, actor)


def _count(tx: Transaction, actor: Holder, operation: str, now: str, times: int, what: str) -> None:
    bound = actor.bounds.get(operation)
    if bound is None or bound.per_day is None or actor.id is None:
        return
    if not uses.reserve(tx, actor.id, operation, now[:10], bound.per_day, times):
        midnight = datetime.fromisoformat(now[:10]) + timedelta(days=1)
        left = bound.per_day - find_uses(tx, actor.id, operation, now)
        limit = {"name": isolate(actor.name), "what": what, "often": describe_per_day(bound.per_day)}
        wait = midnight - datetime.fromisoformat(now).replace(tzinfo=None)
        raise Refused(
            "GRANT_USED_UP",
            _describe_end(limit, bound.per_day, times, left),
            facts=({} if operation == WHOLE else {"operation": operation})
            | {"perDay": bound.per_day, "retryAfter": max(1, int(wait.total_seconds()) + 1)},
        )


def _describe_end(limit: Mapping[str, str], per_day: int, times: int, left: int) -> str:
    """Return why a grant cannot be used `times` more today. `limit` contains its key's name, what it allows, and how often."""
    if per_day == 0:
        return say("The key '{name}' may never {what}: its limit is {often}. {ask}", ask=ASK, **limit)
    if left > 0:
        return say(
            "The key '{name}' may {what} {often}. This needs {times:,}, and {left:,} are left today. The next day begins at "
            "midnight UTC.",
            times=times,
            left=left,
            **limit,
        )
    return say("The key '{name}' may {what} {often}, and has already done so today. The next day begins at midnight UTC.", **limit)
