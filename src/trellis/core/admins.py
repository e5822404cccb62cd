"""Administrators: the operations that create, change and disable them. No event ever holds a password or its digest."""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from trellis.core.events import changed_members
from trellis.core.fields import Field, Invalid, Text, format_timestamp, invalid_id, require
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.paging import PAGING, PER_PAGE, serialize_page
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store.admins import Administrator, administrators, sessions
from trellis.store.counters import next_number

SHORTEST: Final = 12  # characters of a password
LONGEST: Final = 255
_LINK_LIVES: Final = timedelta(hours=1)
# RFC 9106's low-memory profile (64 MiB, 3 passes, about 50 ms): interfaces run it in a thread, never in the writer.
_HASHER: Final = PasswordHasher()
_NOBODY: Final = _HASHER.hash(
    secrets.token_hex()
)  # verified for an unknown login, so that the time does not tell which logins exist


@dataclass(frozen=True, slots=True)
class NewPassword:
    """A new password. Parsing turns it into its argon2id digest, which is all that an operation gets to see.

    That takes about 50 ms and 64 MiB, so an interface with an event loop does it in a thread.
    """

    widget: str = "new-password"

    def parse(self, raw: Any) -> str:
        if not isinstance(raw, str) or not SHORTEST <= len(raw) <= LONGEST:
            raise Invalid(f"must have {SHORTEST} to {LONGEST} characters.")
        if len(set(raw)) < 4:
            raise Invalid("is too simple: use at least four different characters.")
        return _HASHER.hash(raw.encode("utf-8", "surrogatepass"))

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": SHORTEST, "maxLength": LONGEST, "format": "password"}


NAME: Final = Field("name", Text(100, 1), "The name that events and other administrators show.", required=True, example="Mira Holm")
LOGIN: Final = Field(
    "login",
    Text(255, 1),
    "What is typed to sign in: an e-mail address or any word.",
    required=True,
    example="mira@example.com",
)
PASSWORD: Final = Field(
    "password", NewPassword(), f"At least {SHORTEST} characters. A few words in a row are easy to keep in mind.", required=True
)
LINK: Final = Field("link", Text(100), "The secret of a one-time link.", required=True, write_only=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations on administrators. All are for the panel and the terminal."""
    return (
        Operation("admins.list", "List administrators", "All administrators, disabled ones too.", _list, PAGING),
        Operation("admins.get", "Get an administrator", "One administrator by their id.", _get, has_target=True),
        Operation("admins.create", "Add an administrator", "Adds an administrator.", _create, (NAME, LOGIN, PASSWORD), writes=True),
        Operation(
            "admins.begin",
            "Make the first administrator",
            "Makes the first administrator by a one-time link, which is used up by it.",
            _begin,
            (NAME, LOGIN, PASSWORD, LINK),
            writes=True,
        ),
        _updating_operation(
            "admins.update", "Change an administrator", "Changes an administrator's name or login.", _update, NAME, LOGIN
        ),
        _updating_operation(
            "admins.set_password",
            "Set a password",
            "Sets an administrator's password, and ends all their sessions.",
            _set_password,
            PASSWORD,
        ),
        _updating_operation(
            "admins.disable", "Disable an administrator", "Ends their sessions; they cannot sign in any more.", _disable
        ),
        _updating_operation("admins.enable", "Enable an administrator", "Lets a disabled administrator sign in again.", _enable),
    )


def _updating_operation(name: str, summary: str, doc: str, run: Callable[[Context], Outcome], *fields: Field) -> Operation:
    return Operation(name, summary, doc, run, fields, writes=True, has_target=True)


def serialize_administrator(admin: Administrator) -> dict[str, Any]:
    """Serialize an administrator: everything but the password's digest."""
    return {
        "id": admin.id,
        "name": admin.name,
        "login": admin.login,
        "disabledAt": admin.disabled_at,
        "lastSeenAt": admin.last_seen_at,
        "createdAt": admin.created_at,
        "updatedAt": admin.updated_at,
    }


# --- the operations -----------------------------------------------------------------------------------------------


def _list(context: Context) -> Outcome:
    context.input.demand()
    page, per_page = context.input.get("page", 1), context.input.get("perPage", PER_PAGE)
    total, found = administrators.read_page(context.tx, per_page, (page - 1) * per_page)
    return Outcome(serialize_page([serialize_administrator(admin) for admin in found], total, page, per_page))


def _get(context: Context) -> Outcome:
    context.input.demand()
    return Outcome(serialize_administrator(_find_administrator(context)))


def _find_administrator(context: Context) -> Administrator:
    admin = administrators.find(context.tx, context.call.target or 0)
    if admin is None:
        raise invalid_id("administrator", context.call.target, "1T106/4")
    return admin


def _begin(context: Context) -> Outcome:
    given = require((LINK,), context.input)
    given.demand()
    link = given.get("link")
    if administrators.count(context.tx) or not administrators.is_valid_link(context.tx, hash_token(link), context.now):
        raise Refused(
            "LINK_SPENT",
            "This link was used, or is older than an hour, or there is an administrator already. "
            "Start `trellis serve` again for a new one, or run: trellis admins create LOGIN",
        )
    outcome = _create(context)
    administrators.delete_links(context.tx)
    return outcome


def _create(context: Context) -> Outcome:
    given = require((NAME, LOGIN, PASSWORD), context.input)
    faults = given.faults + _check_login(context, given.get("login"), 0)
    if faults:
        raise refuse_faults(faults)
    admin = Administrator(
        id=next_number(context.tx, "admins"),
        name=given.get("name"),
        login=given.get("login"),
        digest=given.get("password"),
        created_at=context.now,
        updated_at=context.now,
        disabled_at=None,
        last_seen_at=None,
    )
    administrators.insert(context.tx, admin)
    after = serialize_administrator(admin)
    return Outcome(after, admin.id, after=after)


def _check_login(context: Context, login: str | None, own: int) -> tuple[Fault, ...]:
    other = administrators.find_by_login(context.tx, login) if login else None
    if other is None or other.id == own:
        return ()
    return (Fault("login", "LOGIN_TAKEN", f"login {other.login} belongs to {other.name} already. Choose another."),)


def _update(context: Context) -> Outcome:
    old = _find_administrator(context)
    given = context.input
    faults = given.faults + _check_login(context, given.get("login"), old.id)
    if faults:
        raise refuse_faults(faults)
    return _save(context, old, replace(old, name=given.get("name", old.name), login=given.get("login", old.login)))


def _set_password(context: Context) -> Outcome:
    old = _find_administrator(context)
    given = require((PASSWORD,), context.input)
    given.demand()
    sessions.end_all(context.tx, old.id)
    return _save(context, old, replace(old, digest=given.get("password")), also=("password",))


def _disable(context: Context) -> Outcome:
    old = _find_administrator(context)
    context.input.demand()
    if old.disabled_at is None and not administrators.count_other_enabled(context.tx, old.id):
        raise Refused(
            "LAST_ADMINISTRATOR",
            f"{old.name} is the only administrator who can sign in. Add or enable another one first.",
        )
    sessions.end_all(context.tx, old.id)
    return _save(context, old, replace(old, disabled_at=old.disabled_at or context.now))


def _enable(context: Context) -> Outcome:
    old = _find_administrator(context)
    context.input.demand()
    return _save(context, old, replace(old, disabled_at=None))


def _save(context: Context, old: Administrator, new: Administrator, also: tuple[str, ...] = ()) -> Outcome:
    before, after = serialize_administrator(old), serialize_administrator(new)
    changed = changed_members(before, after) + also
    if not changed:
        return Outcome(before, happened=False)
    administrators.update(context.tx, replace(new, updated_at=context.now))
    after["updatedAt"] = context.now
    return Outcome(after, old.id, before, after, changed)


# --- passwords and links ------------------------------------------------------------------------------------------


def password_matches(digest: str | None, password: str) -> bool:
    """Return whether a password fits a digest. Takes as long where there is no digest: about 50 ms, and 64 MiB."""
    try:
        _HASHER.verify(digest or _NOBODY, password.encode("utf-8", "surrogatepass"))
    except (VerificationError, InvalidHashError):
        return False
    return digest is not None


def hash_token(token: str) -> str:
    """Return the SHA-256 of a random token in hex, which is what the database keeps of cookies and links."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def link_expiry(now: str) -> str:
    """Return the time at which a one-time link made now expires."""
    return format_timestamp(datetime.fromisoformat(now) + _LINK_LIVES)


def generate_password() -> str:
    """Generate a password: 20 letters and digits that are hard to confuse, in groups of five."""
    letters = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(letters) for _ in range(5)) for _ in range(4))
