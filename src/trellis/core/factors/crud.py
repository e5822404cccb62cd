"""Second factors: the operations for their owners, and the one that removes all those of somebody who is locked out."""

from dataclasses import replace
from typing import Any, Final

from trellis.core.factors.challenges import encode
from trellis.core.factors.codes import find_time_step, generate_recovery_codes, hash_recovery_code
from trellis.core.factors.party import find_party
from trellis.core.factors.passkeys import verify_creation
from trellis.core.factors.proof import LONGEST_ANSWER, has_factor
from trellis.core.factors.secret import AppSecretUnavailable, derive_secret
from trellis.core.fields import MAX_INTEGER, Field, Integer, Text, require_found
from trellis.core.operation import Context, Operation, Outcome, targeted_write
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store.admins import Administrator, administrators, sessions
from trellis.store.counters import next_number
from trellis.store.factors import Authenticator, Passkey, authenticators, delete_all, passkeys, recovery_codes

MOST_PASSKEYS: Final = 20
PASSKEY_NAME: Final = Field(
    "name",
    Text(60, 1, visible=True),
    "A name to recognise the passkey by: the phone, computer or security key that it is on.",
    required=True,
    example="Blue key",
)
CODE: Final = Field("code", Text(20, 1), "The six-digit code that the app shows now.", required=True)
_KEEP: Final = Field("session", Text(16), "The id of the session to keep; all others end.", default="")
_ANSWER: Final = Field("passkey", Text(LONGEST_ANSWER, 1), "The passkey that the browser created.", required=True)
_BINDING: Final = Field("binding", Text(200), "The session that the passkey's challenge was issued to.", default="")
_SALT: Final = Field("salt", Text(100, 1), "The value that the app's secret is derived from.", required=True)
_PASSKEY: Final = Field("passkey", Integer(1, MAX_INTEGER), "The id of the passkey.", required=True)


def operations() -> tuple[Operation, ...]:
    """Return the operations on the second factors of an administrator. All are for the panel and the terminal."""
    return (
        Operation(
            "admins.factors",
            "List second factors",
            "Returns an administrator's passkeys, their authenticator app, and how many recovery codes are left.",
            _list,
            has_target=True,
        ),
        targeted_write(
            "admins.add_passkey",
            "Add a passkey",
            "Adds a passkey that a browser created. Adding the first second factor also ends all other sessions, and returns "
            "recovery codes, once.",
            _add_passkey,
            (PASSKEY_NAME, _ANSWER, _BINDING, _KEEP),
        ),
        targeted_write(
            "admins.rename_passkey", "Rename a passkey", "Gives a passkey another name.", _rename_passkey, (_PASSKEY, PASSKEY_NAME)
        ),
        targeted_write(
            "admins.remove_passkey",
            "Remove a passkey",
            "Removes a passkey and ends all other sessions. Removing the last second factor also removes the recovery codes.",
            _remove_passkey,
            (_PASSKEY, _KEEP),
        ),
        targeted_write(
            "admins.set_authenticator",
            "Set up an authenticator app",
            "Requires codes from this app from now on. Replacing another app or adding the first second factor also ends all other "
            "sessions, and adding the first one returns recovery codes, once.",
            _set_authenticator,
            (_SALT, CODE, _KEEP),
        ),
        targeted_write(
            "admins.remove_authenticator",
            "Remove the authenticator app",
            "Stops requiring codes from an app and ends all other sessions. Removing the last second factor also removes the "
            "recovery codes.",
            _remove_authenticator,
            (_KEEP,),
        ),
        targeted_write(
            "admins.renew_recovery_codes",
            "Create new recovery codes",
            "Creates new recovery codes and returns them, once. The old ones stop working.",
            _renew_recovery_codes,
        ),
        targeted_write(
            "admins.reset_second_factor",
            "Reset an administrator's second factors",
            "Removes all second factors and recovery codes of an administrator who is locked out, and ends all their sessions.",
            _reset,
        ),
    )


# --- the operations -----------------------------------------------------------------------------------------------


def _list(context: Context) -> Outcome:
    admin = _find_administrator(context)
    app = authenticators.find(context.tx, admin.id)
    return Outcome(
        {
            "passkeys": [_serialize(passkey) for passkey in passkeys.find_by_admin(context.tx, admin.id)],
            "app": app and {"createdAt": app.created_at, "usedAt": app.used_at, "isUsable": _is_usable(context, app)},
            "recoveryCodes": recovery_codes.count(context.tx, admin.id),
        }
    )


def _serialize(passkey: Passkey) -> dict[str, Any]:
    return {
        "id": passkey.id,
        "name": passkey.name,
        "isSynced": passkey.is_synced,
        "createdAt": passkey.created_at,
        "usedAt": passkey.used_at,
    }


def _is_usable(context: Context, app: Authenticator) -> bool:
    try:
        derive_secret(context.tx, app.admin_id, app.salt, context.environment.second_factors.key)
    except AppSecretUnavailable:
        return False
    return True


def _add_passkey(context: Context) -> Outcome:
    given, admin = context.input, _find_own(context)
    if len(passkeys.find_by_admin(context.tx, admin.id)) >= MOST_PASSKEYS:
        raise Refused(
            "WRONG_SECOND_FACTOR",
            say("At most {most_passkeys} passkeys are allowed. Remove one first.", most_passkeys=MOST_PASSKEYS),
        )
    party = find_party(context.environment.public_url)
    made = verify_creation(context.tx, context.now, party, given.get("passkey"), given.get("binding", "")) if party else None
    if made is None:
        raise Refused("WRONG_SECOND_FACTOR", say("The passkey could not be read, or the page was open for too long. Try again."))
    credential = encode(made.credential_id)
    if known := passkeys.find_by_credential(context.tx, credential):
        if known.admin_id == admin.id:
            return Outcome({"name": known.name, "recoveryCodes": []}, happened=False)  # the form was sent twice
        raise Refused("WRONG_SECOND_FACTOR", say("This passkey has already been added."))
    is_first = not has_factor(context.tx, admin.id)
    passkeys.insert(
        context.tx,
        Passkey(
            id=next_number(context.tx, "passkeys"),
            admin_id=admin.id,
            name=given.get("name"),
            credential=credential,
            public_key=encode(made.credential_public_key),
            uses=made.sign_count,
            challenge=None,
            is_synced=made.credential_backed_up,
            created_at=context.at,
            used_at=None,
        ),
    )
    return _conclude_addition(context, admin, {"name": given.get("name")}, is_first=is_first, ends_others=is_first)


def _rename_passkey(context: Context) -> Outcome:
    given = context.input
    old = _find_passkey(context, _find_own(context), given.get("passkey"))
    if old.name == given.get("name"):
        return Outcome(_serialize(old), happened=False)
    new = replace(old, name=given.get("name"))
    passkeys.update(context.tx, new)
    return Outcome(_serialize(new), old.admin_id, {"name": old.name}, {"name": new.name}, ("name",))


def _remove_passkey(context: Context) -> Outcome:
    given, admin = context.input, _find_own(context)
    old = _find_passkey(context, admin, given.get("passkey"))
    passkeys.delete(context.tx, old.id)
    return _conclude_removal(context, admin, {"name": old.name})


def _set_authenticator(context: Context) -> Outcome:
    given, admin = context.input, _find_own(context)
    old = authenticators.find(context.tx, admin.id)
    if old is not None and old.salt == given.get("salt"):
        return Outcome({"recoveryCodes": []}, happened=False)  # the form was sent twice
    try:
        secret = derive_secret(context.tx, admin.id, given.get("salt"), context.environment.second_factors.key)
    except AppSecretUnavailable:
        raise Refused("WRONG_SECOND_FACTOR", say("The page was open for too long. Open it again, and scan the new code.")) from None
    step = find_time_step(secret, given.get("code"), context.now, 0)
    if step is None:
        detail = say("code is not the one that the app shows now. If this keeps happening, check the clock of the device.")
        raise refuse_fault("code", "INVALID_VALUE", detail)
    is_first = not has_factor(context.tx, admin.id)
    authenticators.save(context.tx, Authenticator(admin.id, given.get("salt"), step, context.at, None))
    return _conclude_addition(context, admin, {}, is_first=is_first, ends_others=is_first or old is not None)


def _remove_authenticator(context: Context) -> Outcome:
    admin = _find_own(context)
    if authenticators.find(context.tx, admin.id) is None:
        return Outcome({}, happened=False)
    authenticators.delete(context.tx, admin.id)
    return _conclude_removal(context, admin, {})


def _renew_recovery_codes(context: Context) -> Outcome:
    admin = _find_own(context)
    if not has_factor(context.tx, admin.id):
        raise Refused("WRONG_SECOND_FACTOR", say("Recovery codes are a backup for a second factor. Add a passkey or an app first."))
    return Outcome({"recoveryCodes": _replace_codes(context, admin)}, admin.id, after={}, public={})


def _reset(context: Context) -> Outcome:
    admin = _find_own(context)
    after = {"name": admin.name}
    if not delete_all(context.tx, admin.id):
        return Outcome({**after, "wasReset": False}, happened=False)
    sessions.end_all(context.tx, admin.id)
    return Outcome({**after, "wasReset": True}, admin.id, after=after)


# --- shared by the operations -------------------------------------------------------------------------------------


def _find_administrator(context: Context) -> Administrator:
    target = context.call.target
    return require_found(administrators.find(context.tx, target or 0), say("administrator"), target, "1T106/7")


def _find_own(context: Context) -> Administrator:
    """Return the administrator that a call targets. Administrators can target only themselves. Raises Refused."""
    actor = context.call.actor
    if actor.type == "admin" and actor.id != context.call.target:
        raise Refused("NO_PERMISSION", say("A second factor can be changed only by its owner, or at the terminal."))
    return _find_administrator(context)


def _find_passkey(context: Context, admin: Administrator, number: int) -> Passkey:
    found = next((one for one in passkeys.find_by_admin(context.tx, admin.id) if one.id == number), None)
    return require_found(found, say("passkey"), number, "1T106/8")


def _conclude_addition(
    context: Context, admin: Administrator, after: dict[str, Any], *, is_first: bool, ends_others: bool
) -> Outcome:
    """Return the outcome of adding a factor. Ends the other sessions if `ends_others`; the first factor brings recovery codes."""
    if ends_others:
        _end_others(context, admin)
    codes = _replace_codes(context, admin) if is_first else []
    return Outcome({**after, "recoveryCodes": codes}, admin.id, after=after, public=after)


def _conclude_removal(context: Context, admin: Administrator, before: dict[str, Any]) -> Outcome:
    _end_others(context, admin)
    if not has_factor(context.tx, admin.id):
        recovery_codes.replace(context.tx, admin.id, ())
    return Outcome(before, admin.id, before=before)


def _end_others(context: Context, admin: Administrator) -> None:
    sessions.end_all(context.tx, admin.id, keep=context.input.get(_KEEP.name) or "")


def _replace_codes(context: Context, admin: Administrator) -> list[str]:
    codes = generate_recovery_codes()
    recovery_codes.replace(context.tx, admin.id, [hash_recovery_code(admin.id, code) for code in codes])
    return codes
