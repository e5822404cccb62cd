"""Invitations: administrators choose their own first password through a link that works once and expires after three days.

The link contains 256 random bits, of which the database stores only the SHA-256. After many wrong links an address has to wait,
but a right link is always accepted.
"""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.admins.crud import (
    LOGIN,
    NAME,
    PASSWORD,
    add_administrator,
    add_mark,
    find_administrator,
    require_strong,
    save_administrator,
)
from trellis.core.admins.mail import EMAIL
from trellis.core.admins.names import read_own_names
from trellis.core.admins.roles import KINDS, ROLE, require_local_sign_in
from trellis.core.admins.sign_in import count_wrong, find_wait_of_address
from trellis.core.admins.tokens import hash_token, make_link, open_until
from trellis.core.fields import Boolean, Field, Text, isolate, require
from trellis.core.gate import Gate
from trellis.core.operation import Context, Operation, Outcome, Preparation, targeted_write
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import mail
from trellis.store.admins import Administrator, invitations

_LINKS: Final = "links"  # names the counter of wrong links
BY_MAIL: Final = Field(
    "byMail",
    Boolean(),
    "Whether the link is mailed, if there is an address; otherwise it is returned.",
    default=True,
    write_only=True,
)
LINK: Final = Field("link", Text(100), "The secret of the link.", required=True, write_only=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations on invitations. All are for the panel and the terminal."""
    return (
        Operation(
            "admins.invite",
            "Invite an administrator",
            "Adds an administrator who chooses their own password through a link, which is valid for 3 days. If an address is "
            "given and mail can be sent, the link is mailed there; otherwise its secret is returned, once.",
            _invite,
            (NAME, LOGIN, ROLE, KINDS, EMAIL, BY_MAIL),
            writes=True,
            judges_input=True,
            preparation=Preparation(load=read_own_names),
        ),
        targeted_write(
            "admins.renew_invitation",
            "Renew an invitation",
            "Creates a new link for somebody who has not chosen a password yet. It is mailed or returned like the first one. The "
            "old link stops working.",
            _renew,
            (BY_MAIL,),
        ),
        targeted_write(
            "admins.withdraw_invitation",
            "Withdraw an invitation",
            "Makes the link stop working. The invited administrator stays, without a password, and can be invited again.",
            _withdraw,
        ),
        targeted_write(
            "admins.accept_invitation",
            "Accept an invitation",
            "Sets the password that an invited administrator has chosen. Their link works only once.",
            _accept,
            (PASSWORD, LINK),
            preparation=Preparation(judge=_judge),
        ),
    )


@dataclass(frozen=True, slots=True)
class Invited:
    """An administrator with a link that can be used."""

    name: str
    login: str
    actor: Actor

    @property
    def id(self) -> int:
        """The id of the administrator."""
        return self.actor.id or 0


def find_invited(gate: Gate, link: str) -> Invited | None:
    """Return the administrator that a link invites. None if it is made up, used, withdrawn or expired, or they are disabled."""
    with gate.store.reading() as tx:
        admin = invitations.find_invited(tx, hash_token(link), open_until(gate.now()))
    if admin is None:
        return None
    permit = gate.environment.permits.find(admin.role, admin.kinds)
    return Invited(admin.name, admin.login, Actor.administrator(admin.id, admin.name, permit))


def find_wait_for_link(gate: Gate, address: str) -> int:
    """Return how many seconds an address that has sent wrong links has to wait; 0 for none."""
    with gate.store.reading() as tx:
        return find_wait_of_address(tx, _LINKS, address, gate.now())


def count_wrong_link(gate: Gate, address: str) -> Future[None]:
    """Count a wrong link from an address."""
    now = gate.now()
    return gate.store.write(lambda tx: count_wrong(tx, _LINKS, address, now), quiet=True)


# --- the operations -----------------------------------------------------------------------------------------------


def _invite(context: Context) -> Outcome:
    given = require((NAME, LOGIN), context.input)
    outcome = add_administrator(context, given, must_change=False)
    return _with_link(context, outcome, outcome.resource_id or 0)


def _renew(context: Context) -> Outcome:
    admin = _find_without_password(context)
    if admin.disabled_at is not None:
        raise Refused("NOT_INVITED", say("{name} is disabled. Enable them first.", name=isolate(admin.name)))
    after = {"name": admin.name}
    return _with_link(context, Outcome(after, admin.id, after=after), admin.id)


def _with_link(context: Context, outcome: Outcome, admin: int) -> Outcome:
    """Make a link, and mail it or return an outcome with its secret, which only the caller sees."""
    token, until = make_link(context.tx, admin, context.now)
    mail.drop_invitation(context.tx, admin)
    record: dict[str, Any] = {**outcome.result, "id": admin, "invitedUntil": until, "mailedTo": None}
    email = _find_address(context, admin)
    if email is None:
        return outcome._replace(result={**record, "link": token}, public=record)
    mail.insert(context.tx, "invitation", admin, context.now)
    record["mailedTo"] = email
    return outcome._replace(result=record)


def _find_address(context: Context, admin: int) -> str | None:
    """Return the address that an invitation is mailed to; None if it is not mailed."""
    if not (context.environment.mails_links and context.input.get(BY_MAIL.name, BY_MAIL.default)):
        return None
    reader = mail.find_recipient(context.tx, admin)
    return None if reader is None else reader.email


def _withdraw(context: Context) -> Outcome:
    admin = find_administrator(context)
    before = {"name": admin.name}
    mail.drop_invitation(context.tx, admin.id)
    return Outcome(before, admin.id, before=before, happened=invitations.withdraw(context.tx, admin.id))


def _find_without_password(context: Context) -> Administrator:
    admin = find_administrator(context)
    if admin.digest:
        raise Refused("NOT_INVITED", say("{name} already has a password, or signs in at the provider.", name=isolate(admin.name)))
    return admin


def _judge(context: Context) -> dict[str, str | None]:
    """Refuse a link that cannot be used, then a password that cannot be used or is easy to guess.

    Raises Refused (LINK_SPENT, LOCAL_SIGN_IN_OFF).
    """
    admin = find_by_link(context)
    require_local_sign_in(context, admin)
    require_strong(context, admin.name, admin.login)
    return {}


def find_by_link(context: Context) -> Administrator:
    """Return the administrator that the link of a call invites, who must be its target. Raises Refused (LINK_SPENT)."""
    admin = invitations.find_invited(context.tx, hash_token(context.input.get(LINK.name, "")), open_until(context.now))
    if admin is None or admin.id != context.call.target:
        raise Refused("LINK_SPENT", say("This invitation has been used or withdrawn, or has expired. Ask for a new one."))
    return admin


def _accept(context: Context) -> Outcome:
    old = find_by_link(context)
    require_local_sign_in(context, old)
    invitations.withdraw(context.tx, old.id)
    digest = context.input.get("password")
    return add_mark(save_administrator(context, old, replace(old, digest=digest), also=("password",)), digest)
