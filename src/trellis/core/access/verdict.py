"""Judging whether a key may run an operation, without running it: in the same order as the gate, and with the reason."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.bounds import WHOLE, Bound, describe_per_day, find_broken_condition, find_reach, find_uses
from trellis.core.hello import HELLO
from trellis.core.keys import describe_bound
from trellis.core.networks import is_address_allowed
from trellis.core.operation import Operation
from trellis.sentences import join, say
from trellis.store.engine import Transaction
from trellis.store.keys import Key


class Question(NamedTuple):
    """What is asked: whether a key may run an operation on a node (None: any), from an address (None: any of its own), at a time.

    `dry`: as a dry run.
    """

    operation: Operation
    node: int | None
    address: str | None
    at: str
    dry: bool = False


class Verdict(NamedTuple):
    """The answer. `condition` is the one that is not met: a member of the key or of the bound, or `grant`; None if the key may.

    `reason` is the message of the refusal that the API would return; None if the key may, or if the API would make a proposal.
    `detail` says why not; see `describe_permission` for a key that may.
    """

    condition: str | None
    reason: str | None
    detail: str


_MAY: Final = Verdict(None, None, "")


def judge_key(tx: Transaction, key: Key, asked: Question) -> Verdict:
    """Judge whether a key may do what is asked."""
    if key.revoked_at and key.revoked_at <= asked.at:
        ended = _describe_end(key.revoked_at, key.revoked_because)
        detail = say("No: the key was revoked {when} Revoking cannot be undone; create a new key.", when=ended)
        return Verdict("revoked", "INVALID_API_KEY", detail)
    if key.expires_at and key.expires_at <= asked.at:
        detail = say("No: the key expires on {day}. Set a later expiry, or create a new key.", day=_format_day(key.expires_at))
        return Verdict("expires", "INVALID_API_KEY", detail)
    if key.paused_at and key.paused_at <= asked.at:
        detail = say(
            "No: the key was paused {when} Resume it to use it again.",
            when=_describe_end(key.paused_at, key.paused_because),
        )
        return Verdict("paused", "INVALID_API_KEY", detail)
    if asked.address and key.addresses and not is_address_allowed(asked.address, key.addresses):
        detail = say(
            "No: {address} is not one of the key's addresses: {addresses}.",
            address=asked.address,
            addresses=", ".join(key.addresses),
        )
        return Verdict("addresses", "IP_ADDRESS_NOT_ALLOWED", detail)
    if asked.operation.name == HELLO.name:
        return _MAY
    return _judge_grant(tx, key, asked)


def describe_permission(key: Key, asked: Question) -> str:
    """Describe the conditions under which a key may do what is asked, for a key that may."""
    if asked.operation.name == HELLO.name:
        return say("Yes: every valid key may run it.")
    bound = Actor.of_key(key).bounds.get(asked.operation.name, Bound())
    terms = say("Yes: {terms}", terms=_describe_terms(key, asked.address))
    in_all = "" if key.per_day is None else say("All its grants together: {often}.", often=describe_per_day(key.per_day))
    return join(filter(None, (terms, describe_bound(bound), in_all)))


def _judge_grant(tx: Transaction, key: Key, asked: Question) -> Verdict:
    name = asked.operation.name
    if name not in key.grants:
        return Verdict("grant", "NO_PERMISSION", say("No: {name} has not been granted. Grant it to allow it.", name=name))
    holder = Actor.of_key(key)
    bound = holder.bounds.get(name, Bound())
    writes = asked.operation.writes and not asked.operation.is_plan
    broken = find_broken_condition(bound, name, asked.at, writes=writes, dry=asked.dry)
    verdict = None if broken is None else Verdict(broken.condition, broken.message, say("No: {detail}.", detail=broken.detail))
    if verdict is not None and verdict.reason is not None:
        return verdict
    for counted in (name, WHOLE):
        most = holder.bounds.get(counted, Bound()).per_day
        if most is not None and find_uses(tx, key.id, counted, asked.at) >= most:
            what = say("run operations") if counted == WHOLE else say("run {name}", name=name)
            often = describe_per_day(most)
            detail = say("No: the key may {what} {often}, and has already done so.", what=what, often=often)
            never = say("No: the key may never {what}: its limit is {often}.", what=what, often=often)
            return Verdict("perDay", "GRANT_USED_UP", detail if most else never)
    if (outside := _judge_node(tx, holder, asked)) is not None:
        return outside
    return verdict or _MAY  # a proposal is made only of a call that would not be refused


def _judge_node(tx: Transaction, holder: Actor, asked: Question) -> Verdict | None:
    """Return the verdict if the grant is not for the node; None if it is, or if no node was named."""
    kind = asked.operation.kind
    if asked.node is None or kind is None:
        return None
    reach = find_reach(holder, asked.operation.name, kind.name)
    if reach is None or reach.contains(tx, asked.node):
        return None
    named = ", ".join(f"{kind.name}:{root}" for root in reach.roots)
    return Verdict(
        "under",
        "INVALID_ID",
        say(
            "No: the grant is only for {named}, and {singular} {node} is outside.",
            named=named,
            singular=kind.singular,
            node=asked.node,
        ),
    )


def _describe_terms(key: Key, address: str | None) -> str:
    ends = say("until {day}", day=_format_day(key.expires_at)) if key.expires_at else say("without an expiry")
    where = ""
    if key.addresses:
        where = (
            say(", from {address}", address=address)
            if address
            else say(", from {addresses} only", addresses=", ".join(key.addresses))
        )
    return say("it has been granted, {ends}{where}.", ends=ends, where=where)


def _describe_end(at: str, because: str | None) -> str:
    return (
        say("on {day}: {why}.", day=_format_day(at), why=because.rstrip(".")) if because else say("on {day}.", day=_format_day(at))
    )


def _format_day(moment: str) -> str:
    at: Any = datetime.fromisoformat(moment)
    return say("{day} {month} {year}, {time} UTC", day=at.day, month=say(f"{at:%B}"), year=str(at.year), time=f"{at:%H:%M}")
