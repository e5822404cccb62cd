"""Single sign-on: sending people to the provider, and receiving them when they come back. None of it needs a script.

People go to the provider by a link and not by a form, since the content security policy (`form-action`) lets no form lead to
another site. The response to a form that needs a token, such as linking an account, is a page that redirects by itself.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from trellis.admin import PREFIX
from trellis.admin.admins.checking import check_factor, clear_failed_attempts, read_evidence
from trellis.admin.admins.resuming import find_panel_path, go_on, turn_away
from trellis.admin.admins.sign_in import SIGNED_OUT, end_session, has_signed_in_before, read_browser, recognise_browser
from trellis.admin.page import CONFIRM, FIRST_STEPS, SIGN_IN, Page, PageRequest
from trellis.admin.sessions import csrf_token, cut_to_cookie, seal, unseal
from trellis.core.actor import Actor
from trellis.core.admins import (
    SIGN_ON_LOGIN,
    Claims,
    Known,
    Purpose,
    SignOnRequest,
    begin_sign_on,
    count_failed_sign_on,
    find_invited,
    find_known,
    find_sign_on,
    find_sign_on_wait,
    seal_claims,
    unseal_claims,
)
from trellis.core.factors import Evidence, was_taken_since
from trellis.core.fields import isolate
from trellis.core.gate import Result
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.openid import CALLBACK, Provider, ProviderRefused, ProviderUnavailable
from trellis.sentences import format_seconds, mark, say

HERE: Final = "/sign-on"
_ACCOUNT: Final = "/account"
_NEXT: Final = "next"  # the cookie with the path to go to afterwards, or with the link of an invitation
_HOLDS: Final = 900  # seconds for which this cookie is kept
_LATE: Final = say("You came back too late, or in another browser. Try again.")
_WAIT: Final = mark("Signing in there failed too often. Wait {wait}, then try again; your account is not locked.")
_WRONG_CODE: Final = say("That is not a second factor of your account here, or the code was already used. Try again.")
_SPENT: Final = say("This invitation has been used or withdrawn, or has expired. Ask for a new one.")
_TITLES: Final = {
    Purpose.SIGN_ON: say("Sign in"),
    Purpose.CONFIRM: say("Confirm that it is you"),
    Purpose.LINK: say("Link an account"),
    Purpose.ACCEPT: say("Sign in"),
}
_SERVICE: Final = Actor("service", None, "single sign-on", frozenset(("admins.join", "admins.follow_groups", "admins.turn_away")))


def find_provider(request: PageRequest) -> Provider:
    """Return the provider. Raises Refused if there is none."""
    provider = request.provider
    if provider is None:
        raise Refused("NO_ENDPOINT", say("Single sign-on is not set up here."))
    return provider


# --- going to the provider ----------------------------------------------------------------------------------------


async def begin(request: PageRequest) -> Response:
    """Send somebody to the provider to sign in."""
    return await _leave(request, Purpose.SIGN_ON, _path_after(request))


async def begin_again(request: PageRequest) -> Response:
    """Send somebody who is signed in to the provider, to confirm there who they are."""
    return await _leave(request, Purpose.CONFIRM, _path_after(request))


async def begin_link(request: PageRequest) -> Response:
    """Send somebody who has entered their password recently to the provider, to link their account there for signing in."""
    request.require_fresh_form()
    return await _leave(request, Purpose.LINK, {})


async def leave_with_invitation(request: PageRequest, link: str) -> Response:
    """Send an invited person to the provider, whose account there will sign them in."""
    return await _leave(request, Purpose.ACCEPT, {"link": link})


def _path_after(request: PageRequest) -> dict[str, str]:
    path = find_panel_path(request.query.get("next", ""))
    return {"path": path if path == cut_to_cookie(path) else ""}  # a part of an address would lead elsewhere


async def _leave(request: PageRequest, purpose: Purpose, kept: Mapping[str, str]) -> Response:
    """Send somebody to the provider. A cookie keeps what is needed when they come back, if anything."""
    provider = find_provider(request)
    sign_on = await request.runner.read(begin_sign_on, purpose, request.csrf)
    try:
        address = await provider.build_address(sign_on)
    except ProviderUnavailable as error:
        return _fail(request, purpose, _unavailable(provider, error), 503, path=kept.get("path", ""))
    if kept:
        request.cookies.append((_NEXT, seal(request.token, kept), _HOLDS))
    if request.http.method != "POST":
        return RedirectResponse(address, 303)
    return request.page("sign_on_leave.html", title=say("Redirecting to {name}", name=isolate(provider.name)), address=address)


def _unavailable(provider: Provider, error: ProviderUnavailable) -> str:
    return say(
        "{name} is currently unavailable. {error} Owners who have a password can sign in with it.",
        name=isolate(provider.name),
        error=error.told,
    )


# --- coming back --------------------------------------------------------------------------------------------------


async def come_back(request: PageRequest) -> Response:
    """Handle the return of somebody from the provider: ask the provider who they are, and continue."""
    provider, browser = find_provider(request), request.read_cookie("browser")
    if wait := await request.runner.read(find_sign_on_wait, request.address, browser):
        return _fail(request, None, say(_WAIT, wait=format_seconds(wait)), 429, wait)
    state = request.query.get("state", "")[:200]
    sign_on = await request.runner.read(find_sign_on, request.csrf, state)
    if sign_on is None:
        if await _has_signed_in_meanwhile(request, state):
            return request.redirect("")
        return await _count(request, _fail(request, None, _LATE, 403))
    try:
        now = datetime.fromisoformat(request.now).timestamp()
        claims = (await provider.identify(sign_on, request.query, now)).for_policy(request.gate.environment.sign_on)
    except ProviderRefused as refused:
        told = say("{name} did not confirm who you are. {error}", name=isolate(provider.name), error=refused.told)
        return await _count(request, _fail(request, sign_on.purpose, told, 403))
    except ProviderUnavailable as error:  # no attempt of theirs has failed
        return _fail(request, sign_on.purpose, _unavailable(provider, error), 503)
    return await _go_on(request, sign_on, claims)


async def _has_signed_in_meanwhile(request: PageRequest, state: str) -> bool:
    """Return whether somebody who left for the provider as a visitor has a session by now, which they began in another tab."""
    if request.me is None:
        return False
    left = await request.runner.read(find_sign_on, csrf_token(request.read_cookie("visitor")), state)
    return left is not None and left.purpose is Purpose.SIGN_ON


async def take_second_factor(request: PageRequest) -> Response:
    """Check the second factor of somebody who has shown none at the provider, and continue."""
    find_provider(request)
    pending = request.form.get("pending", "")
    found = None if request.stale else await request.runner.read(unseal_claims, request.csrf, pending)
    known = None if found is None else await request.runner.read(find_known, found[1])
    if found is None or known is None:
        has_gone_on = has_signed_in_before(request) or (request.me is not None and request.me.has_confirmed(request.now))
        return request.redirect("") if has_gone_on else _fail(request, None, _LATE, 409)
    attempt = await check_factor(request, known.id, known.login)
    if attempt.proven is None:
        if not attempt.wait and await _was_code_taken(request, found[0], known):
            return request.redirect(_take_next(request))
        return turn_away(request, "second_step.html", _second_step(found[0], pending), _WRONG_CODE, attempt.wait)
    return await _go_on(request, *found, read_evidence(request))


async def _was_code_taken(request: PageRequest, sign_on: SignOnRequest, known: Known) -> bool:
    """Return whether the code was used since somebody went to the provider: their form was most likely sent twice.

    If the first response has not signed them in, a redirect leads to the form for signing in.
    """
    return await request.runner.read(was_taken_since, known.id, sign_on.issued_at, read_evidence(request))


def _second_step(sign_on: SignOnRequest, pending: str) -> dict[str, Any]:
    own = {"pending": pending, "login": "", "action": f"{HERE}/code", "title": _TITLES[sign_on.purpose]}
    return {**own, "next": "", "carried": (), "replay": False}


async def _go_on(request: PageRequest, sign_on: SignOnRequest, claims: Claims, evidence: Evidence | None = None) -> Response:
    """Do what somebody was sent to the provider for: signing in, confirming who they are, linking, or accepting an invitation."""
    known = await request.runner.read(find_known, claims)
    try:
        if sign_on.purpose is Purpose.LINK:
            return await _link(request, sign_on, claims)
        if sign_on.purpose is Purpose.ACCEPT:
            return await _accept(request, sign_on, claims)
        if sign_on.purpose is Purpose.CONFIRM:
            _require_own(request, known)
        known = known or await _join(request, sign_on, claims)
        await _follow_groups(request, sign_on, claims, known)
        if known.needs_factor and evidence is None:
            pending = await request.runner.read(seal_claims, request.csrf, sign_on, claims)
            return request.page("second_step.html", **_second_step(sign_on, pending), fault="")
        if sign_on.purpose is Purpose.CONFIRM:
            return await _confirm(request, sign_on, claims, evidence)
        return await _sign_on(request, sign_on, claims, known, evidence)
    except Refused as refused:
        if refused.status >= 500:
            raise
        if evidence is not None and known is not None and await _was_code_taken(request, sign_on, known):
            response = request.redirect(_take_next(request))
        else:
            response = await _count(request, _fail(request, sign_on.purpose, refused.detail, 403), known)
        return response


def _require_own(request: PageRequest, known: Known | None) -> None:
    """Refuse an account at the provider that is not linked to the administrator who is signed in."""
    if known is None or known.id != request.signed_in.id:
        raise Refused("SIGN_ON_REFUSED", say("That is not the account that is linked to yours here."))


async def _join(request: PageRequest, sign_on: SignOnRequest, claims: Claims) -> Known:
    joined = (await _perform(request, "admins.join", _SERVICE, _raw(request, sign_on, claims))).value
    return Known(joined["id"], joined["name"], joined["login"], needs_factor=False)


async def _follow_groups(request: PageRequest, sign_on: SignOnRequest, claims: Claims, known: Known) -> None:
    """Set somebody's role by their groups before they are signed in, or turn them away if their groups give no role."""
    policy = request.gate.environment.sign_on
    if policy.roles:
        operation = "admins.turn_away" if policy.find_role(claims.groups) is None else "admins.follow_groups"
        await _perform(request, operation, _SERVICE, _raw(request, sign_on, claims), known.id)


async def _sign_on(
    request: PageRequest, sign_on: SignOnRequest, claims: Claims, known: Known, evidence: Evidence | None
) -> Response:
    old = request.me
    raw = {**_raw(request, sign_on, claims, evidence), "browser": read_browser(request)}
    signed_on = await _perform(request, "admins.sign_on", Actor("admin", known.id, known.name), raw, known.id)
    then = _take_next(request)
    request.take_session(signed_on.value["token"])
    if evidence is not None:
        await clear_failed_attempts(request, known.login)
    await recognise_browser(request, known.login, SIGN_ON_LOGIN)
    if old is not None:
        await request.runner.perform(end_session(request, old))
    return request.redirect(then)


async def _confirm(request: PageRequest, sign_on: SignOnRequest, claims: Claims, evidence: Evidence | None) -> Response:
    me = request.signed_in
    raw = {**_raw(request, sign_on, claims, evidence), "session": me.session_id}
    confirmed = await _perform(request, "admins.confirm_sign_on", me.actor, raw, me.id)
    then = _take_next(request)
    request.take_session(confirmed.value["token"])
    if evidence is not None:
        await clear_failed_attempts(request, me.login)
    return request.redirect(then)


async def _link(request: PageRequest, sign_on: SignOnRequest, claims: Claims) -> Response:
    me = request.signed_in
    linked = await _perform(request, "admins.link_identity", me.actor, _raw(request, sign_on, claims), me.id)
    name, login = isolate(linked.value["provider"]), isolate(linked.value["name"])
    return request.redirect(_ACCOUNT, say("You can now sign in with your account {login} at {name}.", login=login, name=name))


async def _accept(request: PageRequest, sign_on: SignOnRequest, claims: Claims) -> Response:
    """Link the account of an invited person, and send them to sign in with it as usual, so that their groups count at once."""
    link = (unseal(request.token, request.read_cookie(_NEXT)) or {}).get("link", "")
    invited = await request.runner.read(find_invited, link)
    if invited is None:
        raise Refused("LINK_SPENT", _SPENT)
    raw = {**_raw(request, sign_on, claims), "link": link}
    await _perform(request, "admins.accept_by_sign_on", invited.actor, raw, invited.id)
    request.cookies.append((_NEXT, "", 0))
    return request.redirect(HERE)


def _raw(request: PageRequest, sign_on: SignOnRequest, claims: Claims, evidence: Evidence | None = None) -> dict[str, Any]:
    shown = evidence or Evidence()
    own = {"state": sign_on.state, "address": request.address, "agent": request.agent}
    return {**claims.raw, **shown.raw, "binding": request.csrf, **own}


async def _perform(request: PageRequest, operation: str, actor: Actor, raw: dict[str, Any], target: int | None = None) -> Result:
    taken = {field.name for field in request.catalogue.find(operation).fields}
    its = {name: value for name, value in raw.items() if name in taken}
    return await request.runner.perform(request.trace(Call(operation, actor, its, target)))


def _take_next(request: PageRequest) -> str:
    """Return the path to which somebody was going before they were sent to the provider, and delete its cookie."""
    path = _find_next(request)
    request.cookies.append((_NEXT, "", 0))
    return find_panel_path(PREFIX + path)


def _find_next(request: PageRequest) -> str:
    """Return the path, without /admin, to which somebody was going before they were sent to the provider."""
    return str((unseal(request.token, request.read_cookie(_NEXT)) or {}).get("path", ""))


async def _count(request: PageRequest, response: Response, known: Known | None = None) -> Response:
    """Count a failed attempt, and return the response."""
    await request.runner.write(
        count_failed_sign_on, request.address, request.read_cookie("browser"), 0 if known is None else known.id
    )
    return response


def _fail(
    request: PageRequest, purpose: Purpose | None, fault: str, status: int, wait: int = 0, path: str | None = None
) -> Response:
    """Show what was wrong, on the page from which somebody was sent to the provider. From there, they still go on to `path`."""
    if purpose is Purpose.LINK or (purpose is None and request.me is not None):
        return request.redirect(_ACCOUNT, fault, "bad")
    path = _find_next(request) if path is None else path
    context = {"next": PREFIX + path if path else "", "carried": (), "replay": False, "fault": fault}
    template = "confirm_password.html" if purpose is Purpose.CONFIRM else "sign_in.html"
    response = request.page(template, status=status, title=_TITLES[purpose or Purpose.SIGN_ON], login="", note="", **context)
    if wait:
        response.headers["retry-after"] = str(wait)
    return response


# --- other pages --------------------------------------------------------------------------------------------------


async def done(request: PageRequest) -> Response:
    """Tell somebody who has signed in in a separate tab to continue in the first one."""
    return request.page("sign_on_done.html", title=say("You are signed in"))


async def resume(request: PageRequest) -> Response:
    """Continue with a form that another tab kept meanwhile; its token belongs to an earlier session."""
    find_provider(request)
    if request.me is None:
        return request.redirect(SIGN_IN)
    return go_on(request, say("Continue"), say("You are signed in again."), with_token=True)


async def signed_out(request: PageRequest) -> Response:
    """Tell somebody who is signed out here how to sign out at the provider, too."""
    address = None
    if (provider := request.provider) is not None:
        with suppress(ProviderUnavailable):
            address = await provider.build_sign_out_address()
    return request.page("signed_out.html", title=say("You are signed out"), address=address)


async def unlink(request: PageRequest) -> Response:
    """Unlink one's own account at the provider."""
    result = await request.perform("admins.unlink_identity", target=request.signed_in.id)
    told = say("You can no longer sign in with your account at the provider.") if result.event else say("No account was linked.")
    return request.redirect(_ACCOUNT if request.signed_in.issuer is None else SIGN_IN, told)


PAGES: Final = (
    Page("GET", HERE, begin, open=True),
    Page("GET", CALLBACK.removeprefix(PREFIX), come_back, open=True),
    Page("POST", f"{HERE}/code", take_second_factor, open=True),
    Page("GET", f"{HERE}/done", done, open=True),
    Page("POST", f"{HERE}/resume", resume, open=True),
    Page("GET", SIGNED_OUT, signed_out, open=True),
    Page("GET", f"{CONFIRM}/sign-on", begin_again, before=FIRST_STEPS),
    Page("POST", f"{_ACCOUNT}/sign-on", begin_link, "account", confirms=True),
    Page("POST", f"{_ACCOUNT}/sign-on/unlink", unlink, "account", confirms=True),
)
