"""Checking what somebody has entered to prove who they are: a password, a second factor, or both.

All guesses are slowed alike. A passkey alone is not counted, since it cannot be guessed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from trellis.admin.page import PageRequest
from trellis.core.admins import (
    Credentials,
    Proven,
    check_password,
    clear_attempts,
    count_attempt,
    count_failure,
    find_lane,
    find_lane_of_passkey,
    find_wait,
)
from trellis.core.factors import Evidence, check_evidence, check_second_step, find_login_of_passkey
from trellis.core.gate import Gate


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of an attempt: who it is, or how many seconds to wait before the next one is checked; neither if it failed."""

    proven: Proven | None = None
    wait: int = 0


def read_evidence(request: PageRequest) -> Evidence:
    """Return the second factor in a form: a code, or the browser's answer for a passkey."""
    return Evidence.typed(request.form.get("code", ""), request.form.get("passkey", ""), request.csrf)


async def check_login(request: PageRequest, login: str, password: str, *, counts: bool = True) -> CheckResult:
    """Check a login and its password."""
    credentials = _credentials(request, login, password)
    return await _attempt(request, credentials, lambda: check_password(request.gate, credentials), _count if counts else find_wait)


async def check_both_steps(request: PageRequest, login: str, pending: str) -> CheckResult:
    """Check the second factor that follows a password, and that the password in the step before was right."""
    gate, evidence = request.gate, read_evidence(request)

    def check() -> Proven | None:
        found = check_second_step(gate, login, request.csrf, pending, evidence)
        return None if found is None else Proven(*found)

    return await _attempt(request, _credentials(request, login), check)


async def check_factor(request: PageRequest, admin: int, login: str) -> CheckResult:
    """Check a second factor of an administrator by itself."""
    return await _attempt(request, _credentials(request, login), _prove(request, admin))


async def check_passkey(request: PageRequest) -> tuple[str, CheckResult]:
    """Check a passkey by itself, which counts as two factors. Return the login of its owner, too.

    Its owner never has to wait: otherwise, whoever guesses passwords without end could keep them out for as long. Nor do they wait
    behind the passwords of strangers, who do not know how the browser names the passkey.
    """
    login = await request.runner.read(find_login_of_passkey, read_evidence(request).passkey)
    lane = find_lane_of_passkey(login, request.address)
    return login, await _attempt(request, _credentials(request, login), _prove(request, None), lambda _, __: 0, lane)


def _prove(request: PageRequest, admin: int | None) -> Callable[[], Proven | None]:
    """Return the check of a second factor of the administrator `admin`, or, if that is None, of anybody's passkey."""
    gate, evidence = request.gate, read_evidence(request)

    def check() -> Proven | None:
        found = check_evidence(gate, admin, evidence)
        return None if found is None else Proven(found)

    return check


async def check_again(request: PageRequest) -> CheckResult:
    """Check the administrator who is signed in once more: a passkey, or the password with a code if they have a second factor."""
    gate, me, evidence = request.gate, request.signed_in, read_evidence(request)
    credentials = _credentials(request, me.login, request.form.get("password", ""))

    def check() -> Proven | None:
        if evidence.passkey:
            return None if check_evidence(gate, me.id, evidence) is None else Proven(me.id)
        has_shown = not me.has_factor or check_evidence(gate, me.id, evidence) is not None  # both are always checked
        proven = check_password(gate, credentials)
        return proven if has_shown else None

    return await _attempt(request, credentials, check)


def _count(gate: Gate, credentials: Credentials) -> int:
    return count_attempt(gate, credentials).result()


async def _attempt(
    request: PageRequest,
    credentials: Credentials,
    check: Callable[[], Proven | None],
    count: Callable[[Gate, Credentials], int] = _count,
    lane: str = "",
) -> CheckResult:
    """Check what was typed, unless `count` returns how many seconds to wait. Raises Refused (TOO_MANY_PASSWORDS).

    It waits in `lane` or, without one, in that of its browser or address.

    The first of two steps does not count as an attempt: its outcome is not revealed, and somebody who has to wait between attempts
    could never complete both steps.

    A correct password does not clear the failures: somebody who knows it could then guess the second factor for ever.
    `clear_failed_attempts` clears them.
    """
    gate, lane = request.gate, lane or await request.runner.read(find_lane, credentials)

    def count_and_check() -> CheckResult:
        wait = count(gate, credentials)
        return CheckResult(wait=wait) if wait else CheckResult(check())

    # It is counted in its lane, which may be full: an attempt that is not checked is no failure.
    attempt = await asyncio.wrap_future(gate.lanes.submit(lane, count_and_check))
    if attempt.proven is None and not attempt.wait:
        await request.runner.write(count_failure, credentials)
    return attempt


async def clear_failed_attempts(request: PageRequest, login: str) -> None:
    """Clear the failed attempts of somebody who has passed all checks."""
    await request.runner.write(clear_attempts, _credentials(request, login))


def _credentials(request: PageRequest, login: str, password: str = "") -> Credentials:
    return Credentials(login, password, request.address, request.read_cookie("browser"))
