"""Single sign-on: the request with which somebody is sent to the provider, and the claims that they come back with.

Nothing of this is stored. The state is signed, bound to a browser and to its purpose, and valid for a quarter of an hour. The
nonce, which the provider must repeat, and the PKCE verifier, which it is shown only at the end, are derived from the state with a
key of the service.
"""

import hmac
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Self

import orjson

from trellis.core.admins.sign_in import MINUTE, count_wrong, find_browser, find_wait_of_address
from trellis.core.factors import decode, encode, find_service_key, has_factor, is_live_challenge, issue_challenge, issued_at, sign
from trellis.core.gate import Gate
from trellis.core.networks import find_network
from trellis.core.operation import SignOnPolicy
from trellis.core.roles import OWNER
from trellis.store.admins import administrators, attempts, identities
from trellis.store.engine import Transaction

_STATE_HOLDS: Final = timedelta(minutes=15)  # long enough for people to find their telephone
SIGN_ON_LOGIN: Final = "\n"  # nobody's login: it marks browsers in which somebody has signed in at the provider
_WHAT: Final = "sign-on"  # names the counter of failures


class Purpose(StrEnum):
    """Why somebody is sent to the provider: to sign in, link their account, confirm who they are, or accept an invitation."""

    SIGN_ON = "sign on"
    LINK = "link"
    CONFIRM = "confirm"
    ACCEPT = "accept"


@dataclass(frozen=True, slots=True)
class SignOnRequest:
    """The request with which somebody is sent to the provider. `issued_at` is in seconds."""

    purpose: Purpose
    state: str
    nonce: str
    verifier: str
    issued_at: float

    @property
    def asks_again(self) -> bool:
        """Whether the provider has to ask them to sign in again, even if they are signed in there."""
        return self.purpose is not Purpose.SIGN_ON


@dataclass(frozen=True, slots=True)
class Claims:
    """What the provider states about somebody. Only `issuer` and `subject` identify them; `login` and `name` are for display.

    `auth_time` is when they signed in there, in seconds; None if the provider does not report it. `has_factor`: they used a second
    factor there.
    """

    issuer: str
    subject: str
    name: str
    login: str
    groups: tuple[str, ...] = ()
    auth_time: int | None = None
    has_factor: bool = False

    def for_policy(self, policy: SignOnPolicy) -> Self:
        """Return the same claims without the groups that do not matter here, or come twice, of which there may be hundreds."""
        return type(self)(**{**asdict(self), "groups": tuple(one for one in dict.fromkeys(self.groups) if one in policy.groups)})

    @property
    def raw(self) -> dict[str, Any]:
        """The claims as input of an operation."""
        time = {} if self.auth_time is None else {"authTime": self.auth_time}
        who = {"issuer": self.issuer, "subject": self.subject, "name": self.name, "login": self.login}
        return {**who, "groups": list(self.groups), "providersFactor": self.has_factor, **time}


def begin_sign_on(gate: Gate, purpose: Purpose, binding: str) -> SignOnRequest:
    """Return a new request with which somebody whose browser has this binding is sent to the provider."""
    with gate.store.reading() as tx:
        key = find_service_key(tx)
    return _build(key, purpose, issue_challenge(key, gate.now(), purpose, binding))


def find_sign_on(gate: Gate, binding: str, state: str) -> SignOnRequest | None:
    """Return the request that a state belongs to; None if the state was issued to another browser, or too long ago."""
    with gate.store.reading() as tx:
        return open_state(tx, gate.now(), binding, state)


def open_state(tx: Transaction, now: str, binding: str, state: str) -> SignOnRequest | None:
    """Return the request that a state belongs to; None if the state was issued to another browser, or too long ago."""
    key, challenge = find_service_key(tx), decode(state)
    fitting = (one for one in Purpose if is_live_challenge(key, now, one, binding, challenge, _STATE_HOLDS))
    purpose = next(fitting, None)
    return None if purpose is None else _build(key, purpose, challenge)


def _build(key: bytes, purpose: Purpose, challenge: bytes) -> SignOnRequest:
    nonce, verifier = (encode(sign(key, what, challenge)) for what in ("nonce", "verifier"))
    return SignOnRequest(purpose, encode(challenge), nonce, verifier, issued_at(challenge) / 1000)


# --- finding the administrator ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """An administrator whom the provider has identified. `needs_factor`: they have a second factor here and used none there."""

    id: int
    name: str
    login: str
    needs_factor: bool


def find_known(gate: Gate, claims: Claims) -> Known | None:
    """Return the administrator with the identity in these claims; None if nobody has it."""
    with gate.store.reading() as tx:
        identity = identities.find(tx, claims.issuer, claims.subject)
        admin = None if identity is None else administrators.find(tx, identity.admin_id)
        if admin is None:
            return None
        return Known(admin.id, admin.name, admin.login, not claims.has_factor and has_factor(tx, admin.id))


def seal_claims(gate: Gate, binding: str, request: SignOnRequest, claims: Claims) -> str:
    """Return a request and its claims as a form can carry them from one step to the next, signed and bound to a browser."""
    text = encode(orjson.dumps([request.state, asdict(claims)]))
    with gate.store.reading() as tx:
        return f"{text}.{encode(sign(find_service_key(tx), 'claims', binding, text))}"


def unseal_claims(gate: Gate, binding: str, sealed: str) -> tuple[SignOnRequest, Claims] | None:
    """Return the request and the claims that were sealed; None if it was for another browser, or the request is too old."""
    text, _, signature = sealed.partition(".")
    with gate.store.reading() as tx:
        if not hmac.compare_digest(sign(find_service_key(tx), "claims", binding, text), decode(signature)):
            return None
        state, claims = orjson.loads(decode(text))
        request = open_state(tx, gate.now(), binding, state)
    return None if request is None else (request, Claims(**{**claims, "groups": tuple(claims["groups"])}))


def can_anybody_sign_in(gate: Gate) -> bool:
    """Return whether any administrator can sign in, at the provider or with a password."""
    policy = gate.environment.sign_on
    with gate.store.reading() as tx:
        return administrators.any_can_sign_in(tx, policy.issuer, OWNER if policy.owners_only else None)


def lacks_local_owner(gate: Gate) -> bool:
    """Return whether single sign-on is set up, but no owner could sign in while the provider is down."""
    if not gate.environment.sign_on.issuer:
        return False
    with gate.store.reading() as tx:
        return not administrators.any_can_sign_in(tx, "", OWNER)


# --- slowing down -------------------------------------------------------------------------------------------------


def find_sign_on_wait(gate: Gate, address: str, browser: str) -> int:
    """Return how many seconds an address has to wait before the provider is asked about somebody again; 0 for none.

    A browser in which somebody has signed in at the provider before has to wait only because of its own failures.
    """
    now = gate.now()
    with gate.store.reading() as tx:
        return find_wait_of_address(tx, _find_what(tx, browser, now), address, now)


def count_failed_sign_on(gate: Gate, address: str, browser: str, admin: int = 0) -> Future[None]:
    """Count a failed sign-on, for the waits and for the event that reports this minute."""
    now = gate.now()

    def count(tx: Transaction) -> None:
        count_wrong(tx, _find_what(tx, browser, now), address, now)
        attempts.count_failed(tx, now[:MINUTE], find_network(address), admin)

    return gate.store.write(count, quiet=True)


def _find_what(tx: Transaction, browser: str, now: str) -> str:
    known = find_browser(tx, SIGN_ON_LOGIN, browser, now)
    return f"{_WHAT}/{known}" if known else _WHAT
