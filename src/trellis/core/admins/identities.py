"""Identities: the operations of single sign-on. The panel asks the provider first, and checks what it has signed.

An administrator is identified by issuer and subject, never by an e-mail address, which may later be given to somebody else. Each of
these operations except unlinking checks the state that was sent to the provider once more. Signing in, linking and confirming use
the state up.
"""

from dataclasses import replace
from typing import Final

from trellis.core.admins.crud import (
    LOGIN,
    NAME,
    add_administrator,
    change_role,
    find_administrator,
    is_own,
    save_administrator,
)
from trellis.core.admins.invitations import LINK, find_by_link
from trellis.core.admins.names import read_own_names, tell_apart
from trellis.core.admins.roles import require_local_sign_in, require_other_owner
from trellis.core.admins.sessions import (
    ADDRESS,
    AGENT,
    BROWSER,
    BY_PROVIDERS_FACTOR,
    BY_SIGN_ON,
    SESSION,
    confirm_session,
    describe_client,
    find_own_session,
    start_session,
)
from trellis.core.admins.sign_on import Purpose, SignOnRequest, open_state
from trellis.core.factors import EVIDENCE, decode, is_spent, take_factor
from trellis.core.fields import MAX_INTEGER, Boolean, Field, Input, Integer, Text, TextList, isolate, require
from trellis.core.operation import Context, GroupRole, Operation, Outcome, Preparation, SignOnPolicy, targeted_write
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.admins import NO_PASSWORD, Administrator, Identity, administrators, identities, invitations, sessions

_CLOCKS_DIFFER: Final = 60  # seconds by which the clocks of the provider and this machine may differ
_ISSUER: Final = Field("issuer", Text(500, 1), "The provider.", required=True)
_SUBJECT: Final = Field("subject", Text(255, 1), "The administrator's subject at the provider.", required=True)
_STATE: Final = Field("state", Text(100, 1), "The state that was sent to the provider.", required=True)
_GROUPS: Final = Field("groups", TextList(), "The administrator's groups at the provider that have a role here.", default=())
_AUTH_TIME: Final = Field(
    "authTime", Integer(0, MAX_INTEGER), "When the administrator signed in at the provider, as a Unix timestamp in seconds."
)
_FACTOR: Final = Field(
    "providersFactor", Boolean(), "Whether the administrator used a second factor at the provider.", default=False
)
_NAMES: Final = tuple(replace(field, required=False) for field in (NAME, LOGIN))  # the provider may tell none
_CLAIMS: Final = (_ISSUER, _SUBJECT, _STATE, *_NAMES, _GROUPS, _AUTH_TIME, _FACTOR, *EVIDENCE)


def operations() -> tuple[Operation, ...]:
    """Return the operations of single sign-on. All are for the panel and the terminal."""
    return (
        targeted_write(
            "admins.sign_on",
            "Sign an administrator in through the provider",
            "Starts a session for an administrator whom the provider has identified, and returns the secret of its cookie, once. "
            "Administrators with a second factor must provide it, unless the provider says that they used one there. The session "
            "ends after 12 hours.",
            _sign_on,
            (*_CLAIMS, ADDRESS, AGENT, BROWSER),
        ),
        targeted_write(
            "admins.confirm_sign_on",
            "Confirm an administrator at the provider",
            "Does what `admins.confirm_password` does, for an administrator who has just signed in again at the provider.",
            _confirm,
            (*_CLAIMS, SESSION, ADDRESS, AGENT),
        ),
        Operation(
            "admins.join",
            "Become an administrator",
            "Adds an administrator whom the provider has identified, with the role of their groups, if the settings allow it.",
            _join,
            _CLAIMS,
            writes=True,
            preparation=Preparation(load=read_own_names),
        ),
        targeted_write(
            "admins.follow_groups",
            "Update a role from the provider's groups",
            "Gives an administrator who has signed in at the provider the role of their groups.",
            _follow_groups,
            _CLAIMS,
        ),
        targeted_write(
            "admins.turn_away",
            "Turn away an administrator without a role",
            "Ends the sessions of an administrator whose groups at the provider no longer give them a role.",
            _turn_away,
            _CLAIMS,
        ),
        targeted_write(
            "admins.link_identity",
            "Link an account at the provider",
            "Lets an administrator sign in with their account at the provider from now on.",
            _link,
            _CLAIMS,
        ),
        targeted_write(
            "admins.accept_by_sign_on",
            "Accept an invitation at the provider",
            "Accepts an invitation with an account at the provider, with which the administrator signs in from now on instead of a "
            "password. The invitation can be used only once.",
            _accept,
            (*_CLAIMS, LINK),
        ),
        targeted_write(
            "admins.unlink_identity",
            "Unlink the account at the provider",
            "Stops an administrator from signing in with their accounts at the provider, and ends the sessions that they started "
            "there.",
            _unlink,
        ),
    )


# --- shared by the operations -------------------------------------------------------------------------------------


def _read(context: Context, purpose: Purpose) -> tuple[Input, SignOnRequest]:
    """Return the provider's claims, and the request that they answer. Raises Refused."""
    given, policy = context.input, context.environment.sign_on
    if not policy.issuer or given.get("issuer") != policy.issuer:
        raise Refused("SIGN_ON_REFUSED", say("Single sign-on with this provider is not set up."))
    request = open_state(context.tx, context.now, given.get("binding", ""), given.get("state"))
    if request is None or request.purpose is not purpose:
        raise Refused("SIGN_ON_REFUSED", say("You came back too late, or in another browser. Try again."))
    if request.asks_again and given.get("authTime", 0) < request.issued_at - _CLOCKS_DIFFER:
        problem = say("{name} did not ask you to sign in again.", name=isolate(policy.name))
        raise Refused(
            "SIGN_ON_REFUSED",
            say("{told} Its operator has to make it accept prompt=login or max_age, and return auth_time.", told=problem),
        )
    return given, request


def _find_identity(context: Context, given: Input) -> tuple[Administrator, Identity]:
    """Return the administrator that a call targets, and their identity at the provider. Raises Refused."""
    admin = administrators.find(context.tx, context.call.target or 0)
    identity = identities.find(context.tx, given.get("issuer"), given.get("subject"))
    if admin is None or identity is None or identity.admin_id != admin.id:
        raise Refused("SIGN_ON_REFUSED", say("This account is not linked to any administrator here, or not to this one."))
    if admin.disabled_at is not None:
        raise Refused("SIGN_ON_REFUSED", say("{name} is disabled here. An owner can enable them.", name=isolate(admin.name)))
    return admin, identity


def _use(context: Context, identity: Identity, request: SignOnRequest, given: Input) -> None:
    """Mark a state as used. Raises Refused if it was used before, or is older than the newest one that was used."""
    _require_unused(context, identity, request)
    login = given.get("login") or identity.login
    identities.update(context.tx, replace(identity, state=request.state, login=login, used_at=context.at))


def _require_unused(context: Context, identity: Identity, request: SignOnRequest) -> None:
    if identity.state is not None and is_spent(context.now, decode(request.state), decode(identity.state)):
        raise Refused("SIGN_ON_REFUSED", say("This sign-in has already been used. Sign in again."))


def _require_role(policy: SignOnPolicy, admin: Administrator, given: Input) -> None:
    """Refuse an administrator whose role is not the one that their groups give, if groups decide roles. Raises Refused."""
    if not policy.roles:
        return
    role = _find_role(policy, given)
    if (admin.role, _split(admin.kinds)) != (role.role, frozenset(role.kinds)):
        raise Refused("SIGN_ON_REFUSED", say("Your groups or your role have just changed. Sign in again."))


def _find_role(policy: SignOnPolicy, given: Input) -> GroupRole:
    """Return the role of somebody's groups at the provider. Raises Refused if no group has one."""
    if (role := policy.find_role(given.get("groups", ()))) is None:
        raise Refused("SIGN_ON_REFUSED", say("None of your groups at {name} has a role here.", name=isolate(policy.name)))
    return role


def _split(kinds: str | None) -> frozenset[str]:
    return frozenset(kinds.split(",") if kinds else ())


def _role_input(role: GroupRole) -> Input:
    return Input({"role": role.role, "kinds": role.kinds})


def _take_factor(context: Context, given: Input, admin: int) -> tuple[str, str]:
    """Use up the second factor; return how the event and the session describe it. Raises Refused (WRONG_SECOND_FACTOR)."""
    if given.get("providersFactor"):
        return "at the provider", f"{BY_SIGN_ON},{BY_PROVIDERS_FACTOR}"
    factor = take_factor(context, admin)
    return factor, ",".join(filter(None, (BY_SIGN_ON, factor)))


# --- the operations -----------------------------------------------------------------------------------------------


def _sign_on(context: Context) -> Outcome:
    given, request = _read(context, Purpose.SIGN_ON)
    admin, identity = _find_identity(context, given)
    _require_role(context.environment.sign_on, admin, given)
    factor, how = _take_factor(context, given, admin.id)
    _use(context, identity, request, given)
    sign_in = {**describe_client(context, factor), "provider": context.environment.sign_on.name}
    return start_session(context, admin, sign_in, how, identity.issuer)


def _confirm(context: Context) -> Outcome:
    given, request = _read(context, Purpose.CONFIRM)
    admin, identity = _find_identity(context, given)
    session = find_own_session(context)
    _require_role(context.environment.sign_on, admin, given)
    factor, how = _take_factor(context, given, admin.id)
    _use(context, identity, request, given)
    after = {**describe_client(context, factor), "provider": context.environment.sign_on.name}
    return confirm_session(context, session, after, how)


def _join(context: Context) -> Outcome:
    given, _ = _read(context, Purpose.SIGN_ON)
    policy = context.environment.sign_on
    if identities.find(context.tx, given.get("issuer"), given.get("subject")) is not None:
        raise Refused("SIGN_ON_REFUSED", say("This account has just been linked to an administrator. Sign in again."))
    if not policy.joins:
        problem = say("Your account at {name} is not linked to an administrator here.", name=isolate(policy.name))
        raise Refused(
            "SIGN_ON_REFUSED", say("{told} If you are an administrator here, sign in and link it under Your account.", told=problem)
        )
    role = _find_role(policy, given)
    given = require((NAME, LOGIN), given)
    if (given.get("login") or "") and administrators.find_by_login(context.tx, given.get("login")) is not None:
        problem = say("The login {login} already belongs to an administrator here.", login=isolate(given.get("login")))
        raise Refused(
            "SIGN_ON_REFUSED",
            say("{told} If that is you, sign in with your password and link your account under Your account.", told=problem),
        )
    name = tell_apart(context, given.get("name"), given.get("login"))
    values = {**given.values, **_role_input(role).values, "name": name, "password": NO_PASSWORD}
    outcome = add_administrator(context, Input(values, given.faults), must_change=False)
    identities.insert(context.tx, _build_identity(context, given, outcome.resource_id or 0, None))
    return outcome


def _build_identity(context: Context, given: Input, admin: int, state: str | None) -> Identity:
    login = given.get("login") or given.get("subject")
    return Identity(given.get("issuer"), given.get("subject"), admin, login, state, context.at, None)


def _follow_groups(context: Context) -> Outcome:
    given, request = _read_either(context)
    old, identity = _find_identity(context, given)
    _require_unused(context, identity, request)
    return change_role(context, old, _role_input(_find_role(context.environment.sign_on, given)))


def _turn_away(context: Context) -> Outcome:
    given, request = _read_either(context)
    admin, identity = _find_identity(context, given)
    _require_unused(context, identity, request)
    policy = context.environment.sign_on
    is_in = not policy.roles or policy.find_role(given.get("groups", ())) is not None
    ended = 0 if is_in else sessions.end_all(context.tx, admin.id)
    record = {"name": admin.name, "sessions": ended}
    return Outcome(record, admin.id, after=record, happened=ended > 0)


def _read_either(context: Context) -> tuple[Input, SignOnRequest]:
    """Return what `_read` returns, for a request to sign in or for one to confirm who somebody is. Raises Refused."""
    try:
        return _read(context, Purpose.SIGN_ON)
    except Refused:
        return _read(context, Purpose.CONFIRM)


def _link(context: Context) -> Outcome:
    given, request = _read(context, Purpose.LINK)
    admin = _find_own(context)
    policy = context.environment.sign_on
    other = identities.find(context.tx, given.get("issuer"), given.get("subject"))
    if other is not None and other.admin_id != admin.id:
        raise _refuse_taken(policy)
    if any(one.issuer == policy.issuer for one in identities.find_by_admin(context.tx, admin.id)):
        raise Refused("IDENTITY_TAKEN", say("An account at {name} is already linked. Unlink it first.", name=isolate(policy.name)))
    identity = _build_identity(context, given, admin.id, request.state)
    identities.insert(context.tx, identity)
    after = {"name": identity.login, "issuer": identity.issuer}
    return Outcome({**after, "provider": policy.name}, admin.id, after=after)


def _refuse_taken(policy: SignOnPolicy) -> Refused:
    return Refused("IDENTITY_TAKEN", say("This account at {name} is linked to another administrator.", name=isolate(policy.name)))


def _accept(context: Context) -> Outcome:
    given, request = _read(context, Purpose.ACCEPT)
    policy, old = context.environment.sign_on, find_by_link(context)
    if identities.find(context.tx, given.get("issuer"), given.get("subject")) is not None:
        raise _refuse_taken(policy)
    if policy.roles:
        _find_role(policy, given)
    invitations.withdraw(context.tx, old.id)
    identities.insert(context.tx, _build_identity(context, given, old.id, request.state))
    return save_administrator(context, old, replace(old, digest=NO_PASSWORD), also=("identities",))


def _find_own(context: Context) -> Administrator:
    """Return the calling administrator. Refuses any other target: whoever owns a linked account can sign in with it."""
    if not is_own(context):
        raise Refused("NO_PERMISSION", say("Administrators can link accounts only for themselves."))
    return find_administrator(context)


def _unlink(context: Context) -> Outcome:
    admin = find_administrator(context)
    found = identities.find_by_admin(context.tx, admin.id)
    if found and is_own(context):
        require_local_sign_in(context, admin)
        if not admin.has_password:
            raise Refused("SIGN_ON_REFUSED", say("You would no longer be able to sign in. Choose a password first."))
    elif found and not admin.has_password:
        require_other_owner(context, admin)
    for identity in found:
        identities.delete(context.tx, identity)
        sessions.end_of_issuer(context.tx, admin.id, identity.issuer)
    if admin.digest == NO_PASSWORD:  # so that they can be invited to choose a password
        administrators.update(context.tx, replace(admin, digest="", updated_at=context.at))
    before = {"name": ", ".join(identity.login for identity in found)}
    return Outcome({"name": admin.name, "unlinked": len(found)}, admin.id, before=before, happened=bool(found))
