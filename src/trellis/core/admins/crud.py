"""Administrators: the operations that create, change and disable them. No event ever holds a password or its digest."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from trellis.core.admins.passwords import SHORTEST, NewPassword
from trellis.core.admins.sessions import operation as sessions_operation
from trellis.core.admins.tokens import hash_token
from trellis.core.events import changed_members
from trellis.core.fields import Field, Text, invalid_id, require
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.paging import PAGING, PER_PAGE, serialize_page
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store.admins import Administrator, administrators, sessions
from trellis.store.counters import next_number

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
        sessions_operation(),
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
