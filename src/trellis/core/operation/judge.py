"""Checks of the gate: an administrator's role, an actor's current rights before each write, and what a key's calls have done."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from trellis.core.actor import Actor
from trellis.core.bounds import Use, judge_touched
from trellis.core.fields import isolate
from trellis.core.networks import is_address_allowed
from trellis.core.operation.call import Call
from trellis.core.operation.operation import Operation
from trellis.core.operation.outcome import Outcome
from trellis.core.roles import OWN, Permit, Permits
from trellis.errors import Refused
from trellis.sentences import join, say
from trellis.store import keys
from trellis.store.engine import Transaction
from trellis.store.keys import Key


class SessionEnded(Refused):
    """Raised for a write of an administrator whose session was ended while the write waited for its turn."""

    def __init__(self) -> None:
        super().__init__("NO_PERMISSION", say("Your session was ended while this waited. Nothing was changed. Sign in again."))


def judge_role(operation: Operation, actor: Actor, permit: Permit, target: int | None, permits: Permits) -> None:
    """Refuse an operation on the record `target` that an administrator's permit does not allow. Raises Refused (ROLE_NEEDED)."""
    if (missing := _find_missing(operation, actor, target)) is None:
        return
    roles = permits.list_roles(missing)
    titles = [say(role.several) for role in roles]
    whose = say("{names} and {titles}", names=join(titles[:-1], ", "), titles=titles[-1]) if len(titles) > 1 else join(titles)
    raise Refused(
        "ROLE_NEEDED",
        say(
            "{missing} is for {whose}. {name} is {describe}. Nothing was changed. An owner can change roles.",
            missing=missing,
            whose=whose,
            name=isolate(actor.name),
            describe=_describe(permit),
        ),
        facts={"missingOperation": missing, "roles": [role.name for role in roles]},
    )


def is_allowed(operation: Operation, actor: Actor, target: int | None = None) -> bool:
    """Return whether an administrator's role lets them run an operation, on the record `target` if there is one."""
    return _find_missing(operation, actor, target) is None


def conclude(
    tx: Transaction, operation: Operation, actor: Actor, uses: Iterable[Use], outcomes: Sequence[Outcome], more: Iterable[str] = ()
) -> None:
    """Judge what calls of an operation within bounds have done. Writes that have changed nothing do not count as uses after all.

    `more` are the other operations whose grants they needed. Raises Refused (OUT_OF_BOUNDS).
    """
    idle = sum(not (one.happened or one.event) for one in outcomes) if operation.writes else 0
    for use in uses if idle else ():
        use._replace(times=idle).take_off(tx, actor)
    touched = [one for made in outcomes for one in made.list_touched(operation.resource)]
    for name in (operation.name, *more):
        judge_touched(tx, actor, name, touched)


def renew_actor(tx: Transaction, call: Call, now: str, permits: Permits) -> Actor:
    """Return the actor of a write with what they may do now, which may have changed while the write waited for its turn.

    Raises Refused: NO_PERMISSION for an administrator who has been disabled meanwhile, SessionEnded for one whose session has
    ended, INVALID_API_KEY for a key that has been revoked or paused or has expired, or whose secret was replaced, and
    IP_ADDRESS_NOT_ALLOWED for a key that may no longer be used from the address of the call.
    """
    actor = call.actor
    if actor.key is not None:
        return _renew_key(tx, actor, actor.key, call.address, now)
    if actor.type != "admin" or actor.id is None:
        return actor
    from trellis.store.admins import administrators, sessions  # noqa: PLC0415  # start-up time: commands run as the terminal

    if (found := administrators.find_role(tx, actor.id)) is None:
        return actor
    if found.disabled_at is not None:
        raise Refused(
            "NO_PERMISSION",
            say("{name} was disabled and is no longer an administrator. Nothing was changed.", name=isolate(actor.name)),
        )
    if actor.session and not sessions.exists(tx, actor.session):
        raise SessionEnded
    permit = permits.find(found.role, found.kinds)
    return actor if permit is actor.permit else Actor.administrator(actor.id, actor.name, permit, actor.session)


def _renew_key(tx: Transaction, actor: Actor, known: Key, address: str, now: str) -> Actor:
    key = keys.find_for_write(tx, known.id)
    if key is None or key.revoked_at or key.paused_at or not _is_current(actor.digest, key, now):
        raise Refused(
            "INVALID_API_KEY", say("The key was revoked, paused or replaced while this request was waiting. Nothing was changed.")
        )
    if key.expires_at is not None and key.expires_at <= now:
        raise Refused("INVALID_API_KEY", say("The key expired while this request was waiting. Nothing was changed."))
    if key.addresses and address and not is_address_allowed(address, key.addresses):
        detail = say(
            "The key's addresses were changed while this request was waiting, and {address} is no longer one of them. Nothing was "
            "changed.",
            address=address,
        )
        raise Refused("IP_ADDRESS_NOT_ALLOWED", detail)
    return actor if key == known else replace(Actor.of_key(key, actor.digest), is_agent=actor.is_agent)


def _is_current(digest: str, key: Key, now: str) -> bool:
    """Return whether a digest is that of a key's secret, or of its previous secret while that is still valid."""
    return digest == key.digest or (digest == key.old_digest and key.old_until is not None and key.old_until > now)


def _find_missing(operation: Operation, actor: Actor, target: int | None) -> str | None:
    """Return the first operation that a call needs and the actor's role does not include; None if there is none."""
    if actor.grants is None or (operation.name in OWN and target is not None and target == actor.id):
        return None
    return next((name for name in operation.needed if name not in actor.grants), None)


def _describe(permit: Permit) -> str:
    one = say(permit.role.one)
    return say("{role} for {kinds}", role=one, kinds=", ".join(permit.kinds)) if permit.kinds else one
