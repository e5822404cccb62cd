"""Checking a second factor. A code or an answer that was accepted once is not accepted again."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Self

from trellis.core.factors.codes import find_time_step, hash_recovery_code
from trellis.core.factors.party import find_party
from trellis.core.factors.passkeys import verify_use
from trellis.core.factors.secret import AppSecretUnavailable, derive_secret
from trellis.core.fields import Field, Text
from trellis.core.gate import Gate
from trellis.core.operation import Context, Environment
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Transaction
from trellis.store.factors import Authenticator, authenticators, find_kinds, passkeys, recovery_codes

log = logging.getLogger(__name__)

LONGEST_ANSWER: Final = 16_384  # characters of a browser's answer for a passkey
_LONGEST_CODE: Final = 100
EVIDENCE: Final = (
    Field(
        "code",
        Text(_LONGEST_CODE),
        "The code from an authenticator app, or a recovery code, if the administrator has a second factor.",
        default="",
    ),
    Field("passkey", Text(LONGEST_ANSWER), "The browser's response for a passkey, instead of a code.", default=""),
    Field("binding", Text(200), "The session or visitor that the passkey's challenge was issued to.", default=""),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What somebody shows as their second factor: a code, or their browser's answer for a passkey."""

    code: str = field(default="", repr=False)
    passkey: str = field(default="", repr=False)
    binding: str = field(default="", repr=False)

    @classmethod
    def typed(cls, code: str, passkey: str, binding: str) -> Self:
        """Return the evidence in a form. If the code or the passkey is too long to be one, both are left out."""
        fit = len(code) <= _LONGEST_CODE and len(passkey) <= LONGEST_ANSWER
        return cls(code, passkey, binding) if fit else cls(binding=binding)

    @property
    def raw(self) -> dict[str, str]:
        """The evidence as input of an operation."""
        return {"code": self.code, "passkey": self.passkey, "binding": self.binding}


@dataclass(frozen=True, slots=True)
class Proof:
    """A valid second factor. `accept` records that it was used at a time."""

    admin: int
    kind: str
    accept: Callable[[Transaction, str], object]


def has_factor(tx: Transaction, admin: int) -> bool:
    """Return whether an administrator has a second factor."""
    return admin in find_kinds(tx, [admin])


def find_proof(tx: Transaction, environment: Environment, now: str, admin: int | None, evidence: Evidence) -> Proof | None:
    """Return proof that evidence is an administrator's second factor; None if it is not. For a passkey, `admin` may be None."""
    judge = _judge_passkey if evidence.passkey else _judge_code
    proof = judge(tx, environment, now, admin or 0, evidence)
    return proof if proof and admin in (None, proof.admin) else None


def check_evidence(gate: Gate, admin: int | None, evidence: Evidence) -> int | None:
    """Return the administrator whose second factor this is, without using it up; None if it is not valid."""
    with gate.store.reading() as tx:
        proof = find_proof(tx, gate.environment, gate.now(), admin, evidence)
    return proof.admin if proof else None


def take_factor(context: Context, admin: int) -> str:
    """Use up an administrator's second factor; return its type, "" if they have none. Raises Refused (WRONG_SECOND_FACTOR)."""
    evidence = Evidence(**{f.name: context.input.get(f.name, "") for f in EVIDENCE})
    if not (evidence.passkey or has_factor(context.tx, admin)):
        return ""
    proof = find_proof(context.tx, context.environment, context.now, admin, evidence)
    if proof is None:
        raise Refused(
            "WRONG_SECOND_FACTOR", say("This is not the second factor of this administrator, or it has already been used.")
        )
    proof.accept(context.tx, context.at)
    return proof.kind


def find_last_use(tx: Transaction, environment: Environment, now: str, admin: int, evidence: Evidence) -> str | None:
    """Return when this code from an administrator's app was used, if it was the last one that was, and is still current."""
    app = authenticators.find(tx, admin)
    is_last = app is not None and _find_step(tx, environment, now, app, evidence, app.step - 1) == app.step
    return app.used_at if app is not None and is_last else None


def _find_step(
    tx: Transaction, environment: Environment, now: str, app: Authenticator, evidence: Evidence, after: int
) -> int | None:
    """Return the time step after `after` that a code from an app belongs to; None if there is none, or codes cannot be checked."""
    try:
        secret = derive_secret(tx, app.admin_id, app.salt, environment.second_factors.key)
    except AppSecretUnavailable:
        log.warning("Codes from apps cannot be checked: TRELLIS_SECOND_FACTOR_KEY is not the one that the apps were set up with.")
        return None
    return find_time_step(secret, evidence.code, now, after)


def _judge_passkey(tx: Transaction, environment: Environment, now: str, _: int, evidence: Evidence) -> Proof | None:
    party = find_party(environment.public_url)
    passkey = verify_use(tx, now, party, evidence.passkey, evidence.binding) if party else None
    if passkey is None:
        return None
    return Proof(passkey.admin_id, "passkey", lambda tx, at: passkeys.update(tx, replace(passkey, used_at=at)))


def _judge_code(tx: Transaction, environment: Environment, now: str, admin: int, evidence: Evidence) -> Proof | None:
    app, digest = authenticators.find(tx, admin), hash_recovery_code(admin, evidence.code)
    if app is not None and (step := _find_step(tx, environment, now, app, evidence, app.step)) is not None:
        return Proof(admin, "app", lambda tx, at: authenticators.save(tx, replace(app, step=step, used_at=at)))
    if recovery_codes.has(tx, admin, digest):
        return Proof(admin, "recovery code", lambda tx, _: recovery_codes.use(tx, admin, digest))
    return None
