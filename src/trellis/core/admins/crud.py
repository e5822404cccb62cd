"""Administrators: the operations that create, change and disable them. No event ever holds a password or its digest."""

from dataclasses import replace
from typing import Any, Final

from trellis.core import factors
from trellis.core.admins import sessions as signing
from trellis.core.admins.mail import EMAIL, MAILED_ALARMS, describe_last, follow_address, follow_choice, read_mail, serialize_mail
from trellis.core.admins.names import LONGEST_NAME, check_name, read_own_names
from trellis.core.admins.passwords import SHORTEST, NewPassword, find_breach, find_weakness, password_matches
from trellis.core.admins.roles import KINDS, ROLE, give_role, require_other_owner, serialize_role
from trellis.core.admins.sign_in import operation as refused_sign_in
from trellis.core.admins.tokens import hash_token, open_until
from trellis.core.events import save_change
from trellis.core.fields import Boolean, Field, Input, Text, isolate, require, require_found
from trellis.core.operation import Context, Operation, Outcome, Preparation, targeted_write
from trellis.core.paging import PAGING, parse_paging, serialize_page
from trellis.core.version import check_fields
from trellis.errors import Fault, Refused, raise_faults, refuse_fault
from trellis.sentences import say
from trellis.store import mail
from trellis.store.admins import Administrator, Identity, administrators, identities, invitations, sessions
from trellis.store.counters import next_number
from trellis.store.factors import find_kinds
from trellis.store.webhooks import endpoints, reasons

NAME: Final = Field(
    "name",
    Text(LONGEST_NAME, 1, visible=True),
    "The name shown in events and to other administrators.",
    required=True,
    example="Mira Holm",
)
LOGIN: Final = Field(
    "login",
    Text(255, 1, visible=True),
    "The name to sign in with: an e-mail address or any word.",
    required=True,
    example="mira@example.com",
)
PASSWORD: Final = Field(
    "password", NewPassword(), f"At least {SHORTEST} characters. A few words in a row are easy to remember.", required=True
)
MUST_CHANGE: Final = Field(
    "mustChangePassword",
    Boolean(),
    "Whether a new password must be chosen at the first sign-in, because somebody else knows this one.",
    default=True,
    write_only=True,
)
KEEP_WEBHOOKS: Final = Field(
    "keepWebhooks",
    Boolean(),
    "Whether the administrator's webhooks stay on; otherwise they are switched off.",
    default=False,
    write_only=True,
)
LINK: Final = Field("link", Text(100), "The secret of a one-time link.", required=True, write_only=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations on administrators except invitations and single sign-on. All are for the panel and the terminal."""
    return (
        Operation("admins.list", "List administrators", "Returns all administrators, including disabled ones.", _list, PAGING),
        Operation("admins.get", "Get an administrator", "Returns the administrator with this id.", _get, has_target=True),
        *signing.operations(),
        refused_sign_in(),
        *factors.operations(),
        Operation(
            "admins.create",
            "Add an administrator",
            "Adds an administrator.",
            _create,
            (NAME, LOGIN, PASSWORD, MUST_CHANGE, ROLE, KINDS, EMAIL),
            writes=True,
            judges_input=True,
            preparation=Preparation(load=read_own_names, judge=_judge_first_password),
        ),
        Operation(
            "admins.begin",
            "Create the first administrator",
            "Creates the first administrator with a one-time link. The link works only once.",
            _begin,
            (NAME, LOGIN, PASSWORD, LINK),
            writes=True,
            judges_input=True,
            preparation=Preparation(load=read_own_names, judge=_judge_link),
        ),
        targeted_write(
            "admins.update",
            "Change an administrator",
            "Changes an administrator's name, login or e-mail address, and which alarms are mailed there. A previous address is "
            "notified of the change, unless the administrator is still invited: then the link stops working, and another one is "
            "mailed to the new address, if there is one and mail can be sent. Administrators who choose fewer alarms for "
            "themselves are notified, too.",
            _update,
            (NAME, LOGIN, EMAIL, MAILED_ALARMS),
            judges_input=True,
            preparation=Preparation(load=read_own_names),
        ),
        targeted_write(
            "admins.set_role",
            "Set an administrator's role",
            "Changes what an administrator may do, effective from their next request. The last owner who can sign in stays an "
            "owner.",
            _set_role,
            (ROLE, KINDS),
        ),
        targeted_write(
            "admins.set_password",
            "Set a password",
            "Sets an administrator's password and ends all their sessions. Unless they chose it themselves, they have to change "
            "it at the next sign-in, which then requires this password even if they have a passkey. Their second factors are "
            "kept.",
            _set_password,
            (PASSWORD, signing.GOES_ON),
            preparation=Preparation(judge=_judge_new_password),
        ),
        targeted_write(
            "admins.disable",
            "Disable an administrator",
            "Ends an administrator's sessions and prevents them from signing in. Their webhooks are switched off unless "
            "`keepWebhooks` is set, and stay off if the administrator is enabled again.",
            _disable,
            (KEEP_WEBHOOKS,),
        ),
        targeted_write("admins.enable", "Enable an administrator", "Lets a disabled administrator sign in again.", _enable),
    )


def serialize_administrator(admin: Administrator) -> dict[str, Any]:
    """Serialise an administrator: everything but the password's digest."""
    return {
        "id": admin.id,
        "name": admin.name,
        "login": admin.login,
        "disabledAt": admin.disabled_at,
        "mustChangePassword": admin.must_change,
        "isInvited": not admin.digest,
        **serialize_role(admin),
        **serialize_mail(admin),
        "lastSeenAt": admin.last_seen_at,
        "createdAt": admin.created_at,
        "updatedAt": admin.updated_at,
    }


# --- the operations -----------------------------------------------------------------------------------------------


def _list(context: Context) -> Outcome:
    page, per_page = parse_paging(context.input)
    total, found = administrators.read_page(context.tx, per_page, (page - 1) * per_page)
    kinds = find_kinds(context.tx, [admin.id for admin in found])
    listed = [{**serialize_administrator(admin), "secondFactors": kinds.get(admin.id, [])} for admin in found]
    return Outcome(serialize_page(listed, total, page, per_page))


def _get(context: Context) -> Outcome:
    admin = find_administrator(context)
    kinds, ends = find_kinds(context.tx, [admin.id]), invitations.find_ends(context.tx, [admin.id], open_until(context.now))
    its = {
        "secondFactors": kinds.get(admin.id, []),
        "invitedUntil": ends.get(admin.id),
        "hasPassword": admin.has_password,
        "identities": [_serialize_identity(context, one) for one in identities.find_by_admin(context.tx, admin.id)],
        "lastMail": describe_last(context, admin.id),
    }
    return Outcome(serialize_administrator(admin) | its)


def _serialize_identity(context: Context, identity: Identity) -> dict[str, Any]:
    return {
        "issuer": identity.issuer,
        "subject": identity.subject,
        "login": identity.login,
        "isUsable": identity.issuer == context.environment.sign_on.issuer,
        "createdAt": identity.created_at,
        "usedAt": identity.used_at,
    }


def find_administrator(context: Context) -> Administrator:
    """Return the administrator that a call targets. Raises Refused (INVALID_ID)."""
    target = context.call.target
    return require_found(administrators.find(context.tx, target or 0), say("administrator"), target, "1T106/4")


def _judge_link(context: Context) -> dict[str, str | None]:
    """Refuse a link that cannot be used, then a password that is easy to guess. Raises Refused (LINK_SPENT)."""
    _require_link(context)
    return _judge_first_password(context)


def _require_link(context: Context) -> None:
    valid = administrators.is_valid_link(context.tx, hash_token(context.input.get("link", "")), context.now)
    if administrators.count(context.tx) or not valid:
        raise Refused(
            "LINK_SPENT",
            say(
                "This link has been used, or is more than an hour old, or a newer one has been printed, or there is already an "
                "administrator. Restart `trellis serve` for a new link, or run: trellis admins create LOGIN"
            ),
        )


def _judge_first_password(context: Context) -> dict[str, str | None]:
    """Refuse a password that is easy to guess."""
    require_strong(context, context.input.get("name", ""), context.input.get("login", ""))
    return {}


def _judge_new_password(context: Context) -> dict[str, str | None]:
    """Refuse a password that is easy to guess. Administrators who set their own may not keep the one that they have."""
    admin = find_administrator(context)
    require_strong(context, admin.name, admin.login)
    if is_own(context) and password_matches(admin.digest if admin.has_password else None, context.input.get("password").text):
        raise refuse_fault("password", "INVALID_VALUE", say("password is the one that you already have: choose another."))
    return {}


def require_strong(context: Context, *words: str) -> None:
    """Refuse a password that is easy to guess, little more than one of these words, or known from a breach."""
    password, known = context.input.get("password").text, context.environment.breached_passwords
    if weakness := find_weakness(password, context.environment.community_name, *words) or find_breach(password, known):
        raise refuse_fault("password", "INVALID_VALUE", say("password {weakness}", weakness=weakness))


def is_own(context: Context) -> bool:
    """Return whether the caller is the administrator that the call targets."""
    return (context.call.actor.type, context.call.actor.id) == ("admin", context.call.target)


def _begin(context: Context) -> Outcome:
    require((LINK,), context.input).raise_faults()
    _require_link(context)
    outcome = add_administrator(context, require((NAME, LOGIN, PASSWORD), context.input), must_change=False)
    administrators.delete_links(context.tx)
    return add_mark(outcome, context.input.get("password"))


def add_mark(outcome: Outcome, digest: str) -> Outcome:
    """Return the outcome of an operation that sets somebody's first password, with a mark of that password in its result.

    The sign-in that follows checks the mark, and is refused if somebody has reset the password in the meantime.
    """
    mark = factors.mark_password(outcome.resource_id or 0, digest)
    return outcome._replace(result={**outcome.result, "passwordMark": mark}, public=outcome.result)


def _create(context: Context) -> Outcome:
    given = require((NAME, LOGIN, PASSWORD), context.input)
    return add_administrator(context, given, must_change=context.input.get(MUST_CHANGE.name, MUST_CHANGE.default))


def add_administrator(context: Context, given: Input, *, must_change: bool) -> Outcome:
    """Add an administrator, who cannot sign in if no password was sent. Raises Refused."""
    raise_faults(given.faults + _check_login(context, given.get("login"), 0) + check_name(context, given.get("name")))
    admin = Administrator(
        id=next_number(context.tx, "admins"),
        name=given.get("name"),
        login=given.get("login"),
        digest=given.get("password", ""),
        created_at=context.at,
        updated_at=context.at,
        disabled_at=None,
        last_seen_at=None,
        must_change=must_change,
        email=given.get("email"),
    )
    admin = give_role(context, admin, given)
    administrators.insert(context.tx, admin)
    after = serialize_administrator(admin)
    return Outcome(after, admin.id, after=after)


def _check_login(context: Context, login: str | None, own: int) -> tuple[Fault, ...]:
    other = administrators.find_by_login(context.tx, login) if login else None
    if other is None or other.id == own:
        return ()
    return (
        Fault(
            "login",
            "LOGIN_TAKEN",
            say("login {login} already belongs to {name}. Choose another.", login=isolate(other.login), name=isolate(other.name)),
        ),
    )


def _update(context: Context) -> Outcome:
    old = find_administrator(context)
    given = context.input.excuse(context.call.raw, serialize_administrator(old))
    name = given.get("name", old.name)
    similar = check_name(context, name, old.id) if name != old.name else ()
    raise_faults(given.faults + _check_login(context, given.get("login"), old.id) + similar)
    new = replace(old, name=name, login=given.get("login", old.login), **read_mail(given.values, old))
    sent = [field.name for field in (NAME, LOGIN, EMAIL, MAILED_ALARMS) if field.name in context.call.raw]
    check_fields(context.call.expected, serialize_administrator(old), serialize_administrator(new), sent)
    outcome = save_administrator(context, old, new)
    follow_address(context, old, new, outcome)
    if is_own(context):
        follow_choice(context, old, new)
    return outcome


def _set_role(context: Context) -> Outcome:
    return change_role(context, find_administrator(context), context.input)


def change_role(context: Context, old: Administrator, given: Input) -> Outcome:
    """Give an administrator another role. If it allows operations that the old one did not, the event contains `mayDoMore`."""
    new = give_role(context, old, given)
    check_fields(context.call.expected, serialize_role(old), serialize_role(new), (ROLE.name, KINDS.name))
    if new.role != old.role:
        require_other_owner(context, old)
    outcome = save_administrator(context, old, new)
    if outcome.happened and _may_do_more(context, old, new):
        return outcome._replace(after={**(outcome.after or {}), "mayDoMore": True})
    return outcome


def _may_do_more(context: Context, old: Administrator, new: Administrator) -> bool:
    """Return whether an administrator's new role allows operations that the old one did not."""
    before, after = (context.environment.permits.find(admin.role, admin.kinds) for admin in (old, new))
    return before is not None and (after is None or not after.operations <= before.operations)


def _set_password(context: Context) -> Outcome:
    old, given = find_administrator(context), context.input
    own = signing.find_own_session(context) if context.input.get(signing.GOES_ON.name) and is_own(context) else None
    sessions.end_all(context.tx, old.id, keep="" if own is None else own.digest)
    invitations.withdraw(context.tx, old.id)
    new = replace(old, digest=given.get("password"), must_change=not is_own(context))
    outcome = save_administrator(context, old, new, also=("password",))
    result = {**outcome.result, "secondFactors": find_kinds(context.tx, [old.id]).get(old.id, [])}
    if own is None:
        return outcome._replace(result=result)
    token = signing.renew_session(context, own, own.confirmed_with)
    return outcome._replace(result={**result, "token": token}, public=result)


def _disable(context: Context) -> Outcome:
    old = find_administrator(context)
    if is_own(context):
        raise Refused("OWN_ACCOUNT", say("You cannot disable yourself. Ask another administrator to do it."))
    require_other_owner(context, old)
    sessions.end_all(context.tx, old.id)
    invitations.withdraw(context.tx, old.id)
    outcome = save_administrator(context, old, replace(old, disabled_at=old.disabled_at or context.now))
    if not outcome.happened or context.input.get(KEEP_WEBHOOKS.name):
        return outcome
    because = say(reasons.MAKER_DISABLED, name=isolate(old.name))
    off = endpoints.switch_off_made_by(context.tx, "admin", old.id, context.at, because)
    return outcome._replace(touched=tuple({"resource": "webhooks", "id": webhook, "how": "switched off"} for webhook in off))


def _enable(context: Context) -> Outcome:
    old = find_administrator(context)
    return save_administrator(context, old, replace(old, disabled_at=None))


def save_administrator(context: Context, old: Administrator, new: Administrator, also: tuple[str, ...] = ()) -> Outcome:
    """Write an administrator if something has changed; `also` names changes that the serialised one does not show."""
    if _may_get_alarms(new) and not _may_get_alarms(old):
        mail.skip_alarms(context.tx, old.id)  # earlier alarms are no news to them
    return save_change(context, old, new, serialize_administrator, administrators.update, also)


def _may_get_alarms(admin: Administrator) -> bool:
    return admin.digest != "" and admin.disabled_at is None
