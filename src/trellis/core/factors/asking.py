"""What the panel needs to set up a second factor or to ask for one. These functions only read, and change nothing."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from trellis.core.factors import passkeys as webauthn
from trellis.core.factors.challenges import is_pending, issue_pending, mark_password, was_pending
from trellis.core.factors.codes import app_address
from trellis.core.factors.party import find_party
from trellis.core.factors.proof import Evidence, check_evidence, find_last_use, has_factor
from trellis.core.factors.secret import derive_secret, find_salt_prefix, find_service_key, format_secret, generate_salt, sign
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.admins import Administrator, administrators, fold_login
from trellis.store.engine import Transaction
from trellis.store.factors import count_with_factors

_NO_PARTY: Final = say("Passkeys cannot be used here, since browsers do not create any for the address in TRELLIS_PUBLIC_URL.")


@dataclass(frozen=True, slots=True)
class AppSetup:
    """An authenticator app that is being set up: the salt of its secret, the secret, and the address in its QR code."""

    salt: str
    secret: str = field(repr=False)
    address: str = field(repr=False)


def set_up_app(gate: Gate, admin: int, login: str, salt: str = "") -> AppSetup:
    """Return what an administrator enters into their app, with a new secret or with that of an earlier, unfinished setup."""
    operators = gate.environment.second_factors.key
    kept = salt if salt.startswith(find_salt_prefix(operators)) else generate_salt(operators)
    with gate.store.reading() as tx:
        secret = derive_secret(tx, admin, kept, operators)
    return AppSetup(kept, format_secret(secret), app_address(secret, login, gate.environment.community_name))


def options_of_new_passkey(gate: Gate, owner: webauthn.Owner, binding: str) -> str:
    """Return the options for a browser to create a passkey, as JSON. Raises Refused. Takes longer the first time."""
    if (party := find_party(gate.environment.public_url)) is None:
        raise Refused("NO_PERMISSION", _NO_PARTY)
    with gate.store.reading() as tx:
        return webauthn.creation_options(tx, gate.now(), party, gate.environment.community_name, owner, binding)


def options_of_passkey(gate: Gate, admin: int | None, binding: str) -> str:
    """Return the options for a browser to use a passkey, as JSON. Raises Refused. Takes longer the first time."""
    if (party := find_party(gate.environment.public_url)) is None:
        raise Refused("NO_PERMISSION", _NO_PARTY)
    with gate.store.reading() as tx:
        return webauthn.request_options(tx, gate.now(), party, binding, admin)


def find_login_of_passkey(gate: Gate, answer: str) -> str:
    """Return the login of the owner of the passkey that a browser's answer names; "" if there is none."""
    with gate.store.reading() as tx:
        passkey = webauthn.find_passkey(tx, answer)
        admin = administrators.find(tx, passkey.admin_id) if passkey else None
    return admin.login if admin else ""


def has_second_step(gate: Gate, login: str) -> bool:
    """Return whether to ask for a second factor after a password, right or wrong, so that nobody learns which of these it is.

    The same proportion of logins that do not exist are asked for one, so that this does not reveal which logins exist.
    """
    with gate.store.reading() as tx:
        admin = administrators.find_by_login(tx, login)
        return has_factor(tx, admin.id) if admin else _asks_nobody(tx, login)


def _asks_nobody(tx: Transaction, login: str) -> bool:
    having, all_of_them = count_with_factors(tx)
    return sign(find_service_key(tx), "asks", fold_login(login))[0] * all_of_them < having * 256


def begin_pending(gate: Gate, binding: str, mark: str) -> str:
    """Return what the browser sends with the second factor: proof of a password with this mark, or a look-alike without one."""
    with gate.store.reading() as tx:
        return issue_pending(find_service_key(tx), gate.now(), binding, mark)


def check_second_step(gate: Gate, login: str, binding: str, pending: str, evidence: Evidence) -> tuple[int, str] | None:
    """Return the administrator who entered their password before and shows their second factor now, with the mark of that password.

    None if either is wrong. Both are always checked, so that the time this takes does not reveal whether the password was right.
    """
    with gate.store.reading() as tx:
        admin = _find_enabled(tx, login)
        mark = _mark(admin)
        good = is_pending(find_service_key(tx), gate.now(), binding, mark, pending)
    proven = check_evidence(gate, admin.id if admin else 0, evidence)
    return (proven, mark) if good and proven is not None else None


def was_taken(gate: Gate, login: str, binding: str, pending: str, evidence: Evidence) -> bool:
    """Return whether a code from an app was used after the password was entered here: the form was most likely sent twice."""
    with gate.store.reading() as tx:
        admin = _find_enabled(tx, login)
        now = gate.now()
        if admin is None or not is_pending(find_service_key(tx), now, binding, _mark(admin), pending):
            return False
        used_at = find_last_use(tx, gate.environment, now, admin.id, evidence)
    return used_at is not None and was_pending(pending, used_at)


def was_taken_since(gate: Gate, admin: int, since: float, evidence: Evidence) -> bool:
    """Return whether a code from an app was used after a time in seconds: the form was most likely sent twice."""
    with gate.store.reading() as tx:
        used_at = find_last_use(tx, gate.environment, gate.now(), admin, evidence)
    return used_at is not None and datetime.fromisoformat(used_at).timestamp() > since


def _find_enabled(tx: Transaction, login: str) -> Administrator | None:
    admin = administrators.find_by_login(tx, login)
    return admin if admin is not None and admin.disabled_at is None else None


def _mark(admin: Administrator | None) -> str:
    return mark_password(admin.id, admin.digest) if admin else mark_password(0, "")
