"""Passkeys, as in WebAuthn: the options that a browser gets, and the check of its answer. The library does the cryptography.

Each passkey is discoverable, and asks its owner for a fingerprint, a face or a PIN, so that it is two factors by itself.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from trellis.core.factors.challenges import decode, encode, is_live_challenge, is_spent, issue_challenge
from trellis.core.factors.party import Party
from trellis.core.factors.secret import find_service_key, sign
from trellis.store.engine import Transaction
from trellis.store.factors import Passkey, passkeys

if TYPE_CHECKING:
    from webauthn.registration.verify_registration_response import VerifiedRegistration

ADDING: Final = "add a passkey"
PROVING: Final = "use a passkey"
_CREDENTIAL: Final = re.compile(r"[A-Za-z0-9_-]{1,1400}")
_TIMEOUT: Final = 300_000  # milliseconds that a browser gives its owner


class Owner(NamedTuple):
    """The administrator for whom a passkey is created."""

    id: int
    name: str
    login: str


def load() -> None:
    """Load the library, which takes some tenths of a second: do not call this on an event loop or in the writer."""
    import webauthn  # noqa: F401, PLC0415  # start-up time: where passkeys are in use


def creation_options(tx: Transaction, now: str, party: Party, community: str, owner: Owner, binding: str) -> str:
    """Return the options for a browser to create a passkey, as JSON."""
    from webauthn import generate_registration_options, options_to_json  # noqa: PLC0415  # start-up time, as above
    from webauthn.helpers.structs import (  # noqa: PLC0415  # as above
        AuthenticatorSelectionCriteria,
        PublicKeyCredentialDescriptor,
        ResidentKeyRequirement,
        UserVerificationRequirement,
    )

    key = find_service_key(tx)
    has = passkeys.find_by_admin(tx, owner.id)
    options = generate_registration_options(
        rp_id=party.host,
        rp_name=community,
        user_id=sign(key, "user", str(owner.id)),
        user_name=owner.login,
        user_display_name=owner.name,
        challenge=issue_challenge(key, now, ADDING, binding),
        timeout=_TIMEOUT,
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
        ),
        exclude_credentials=[PublicKeyCredentialDescriptor(id=decode(one.credential)) for one in has],
    )
    return options_to_json(options)


def request_options(tx: Transaction, now: str, party: Party, binding: str, admin: int | None) -> str:
    """Return the options for a browser to use a passkey, as JSON: one of an administrator's, or any that it has."""
    from webauthn import generate_authentication_options, options_to_json  # noqa: PLC0415  # start-up time, as above
    from webauthn.helpers.structs import (  # noqa: PLC0415  # as above
        PublicKeyCredentialDescriptor,
        UserVerificationRequirement,
    )

    has = passkeys.find_by_admin(tx, admin) if admin is not None else []
    options = generate_authentication_options(
        rp_id=party.host,
        challenge=issue_challenge(find_service_key(tx), now, PROVING, binding),
        timeout=_TIMEOUT,
        allow_credentials=[PublicKeyCredentialDescriptor(id=decode(one.credential)) for one in has],
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json(options)


def find_passkey(tx: Transaction, answer: str) -> Passkey | None:
    """Find the passkey that an answer names."""
    credential = _parse(answer).get("id")
    if not isinstance(credential, str) or not _CREDENTIAL.fullmatch(credential):
        return None
    return passkeys.find_by_credential(tx, credential)


def verify_creation(tx: Transaction, now: str, party: Party, answer: str, binding: str) -> "VerifiedRegistration | None":
    """Return the passkey that a browser has created; None unless the answer is valid and to a challenge of ours."""
    from webauthn import verify_registration_response  # noqa: PLC0415  # start-up time, as above

    challenge = _find_challenge(answer)
    if not is_live_challenge(find_service_key(tx), now, ADDING, binding, challenge):
        return None
    try:
        return verify_registration_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.host,
            expected_origin=party.origin,
            require_user_verification=True,
        )
    except Exception:  # noqa: BLE001  # what a stranger sends may break any part of the parser
        return None


def verify_use(tx: Transaction, now: str, party: Party, answer: str, binding: str) -> Passkey | None:
    """Return the passkey that has answered a challenge of ours, with the changes to store; None unless the answer is valid."""
    from webauthn import verify_authentication_response  # noqa: PLC0415  # start-up time, as above

    passkey, challenge = find_passkey(tx, answer), _find_challenge(answer)
    if passkey is None or not is_live_challenge(find_service_key(tx), now, PROVING, binding, challenge):
        return None
    if passkey.challenge is not None and is_spent(now, challenge, decode(passkey.challenge)):
        return None
    try:
        verified = verify_authentication_response(
            credential=answer,
            expected_challenge=challenge,
            expected_rp_id=party.host,
            expected_origin=party.origin,
            credential_public_key=decode(passkey.public_key),
            credential_current_sign_count=passkey.uses,
            require_user_verification=True,
        )
    except Exception:  # noqa: BLE001  # what a stranger sends may break any part of the parser
        return None
    return replace(passkey, uses=verified.new_sign_count, challenge=encode(challenge), is_synced=verified.credential_backed_up)


def _find_challenge(answer: str) -> bytes:
    """Return the challenge that an answer contains; no bytes if there is none."""
    response = _parse(answer).get("response")
    told = response.get("clientDataJSON") if isinstance(response, dict) else None
    challenge = _parse(decode(told)).get("challenge") if isinstance(told, str) else None
    return decode(challenge) if isinstance(challenge, str) else b""


def _parse(text: str | bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
