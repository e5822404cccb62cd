"""Checking what somebody has entered to prove who they are: a password, a second factor, or both. All guesses are slowed alike."""

from trellis.admin.page import PageRequest
from trellis.admin.sessions import Attempt
from trellis.core.admins import Credentials, Proven, check_password
from trellis.core.factors import Evidence, check_evidence, check_second_step, find_login_of_passkey


def read_evidence(request: PageRequest) -> Evidence:
    """Return the second factor in a form: a code, or the browser's answer for a passkey."""
    return Evidence.typed(request.form.get("code", ""), request.form.get("passkey", ""), request.csrf)


async def check_login(request: PageRequest, login: str, password: str, *, counts: bool = True) -> Attempt:
    """Check a login and its password."""
    credentials = _credentials(request, login, password)
    return await request.sessions.attempt(credentials, lambda: check_password(request.gate, credentials), counts=counts)


async def check_both_steps(request: PageRequest, login: str, pending: str) -> Attempt:
    """Check the second factor that follows a password, and that the password in the step before was right."""
    gate, evidence = request.gate, read_evidence(request)

    def check() -> Proven | None:
        found = check_second_step(gate, login, request.csrf, pending, evidence)
        return None if found is None else Proven(*found)

    return await request.sessions.attempt(_credentials(request, login), check)


async def check_factor(request: PageRequest, admin: int | None, login: str) -> Attempt:
    """Check a second factor by itself: a factor of the administrator `admin`, or, if that is None, anybody's passkey."""
    gate, evidence = request.gate, read_evidence(request)

    def check() -> Proven | None:
        found = check_evidence(gate, admin, evidence)
        return None if found is None else Proven(found)

    return await request.sessions.attempt(_credentials(request, login), check)


async def check_passkey(request: PageRequest) -> tuple[str, Attempt]:
    """Check a passkey by itself, which counts as two factors. Return the login of its owner, too."""
    login = await request.runner.read(find_login_of_passkey, read_evidence(request).passkey)
    return login, await check_factor(request, None, login)


async def check_again(request: PageRequest) -> Attempt:
    """Check the administrator who is signed in once more: a passkey, or the password with a code if they have a second factor."""
    gate, me, evidence = request.gate, request.signed_in, read_evidence(request)
    credentials = _credentials(request, me.login, request.form.get("password", ""))

    def check() -> Proven | None:
        if evidence.passkey:
            return None if check_evidence(gate, me.id, evidence) is None else Proven(me.id)
        has_shown = not me.has_factor or check_evidence(gate, me.id, evidence) is not None  # both are always checked
        proven = check_password(gate, credentials)
        return proven if has_shown else None

    return await request.sessions.attempt(credentials, check)


async def settle(request: PageRequest, login: str) -> None:
    """Clear the failed attempts of somebody who has passed all checks."""
    await request.sessions.settle(_credentials(request, login))


def _credentials(request: PageRequest, login: str, password: str = "") -> Credentials:
    return Credentials(login, password, request.address, request.read_cookie("browser"))
