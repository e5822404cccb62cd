"""Invitations: inviting an administrator, making and withdrawing links, and the page behind a link, where a password is chosen."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.admins.roles import LEAST, build_role_form
from trellis.admin.admins.sessions import fetch_admin
from trellis.admin.admins.sign_in import ask_to_sign_in, end_session, start_session
from trellis.admin.admins.sign_on import leave_with_invitation
from trellis.admin.confirm import Confirmation
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.core.admins import (
    BY_MAIL,
    EMAIL,
    LOGIN,
    NAME,
    PASSWORD,
    Invited,
    Proven,
    count_wrong_link,
    find_invited,
    find_wait_for_link,
)
from trellis.core.factors import Evidence, has_second_step
from trellis.core.fields import isolate
from trellis.core.gate import Result
from trellis.errors import Refused
from trellis.sentences import mark, say

_SECTION: Final = "administrators"
_HERE: Final = f"/{_SECTION}"
_ONE: Final = f"{_HERE}/{{id:int}}/invitation"
_BEHIND: Final = "/invitation/{link}"
_MAILED: Final = say("The link is mailed to this address. Without an address, it is shown to you once.")
_NOT_MAILED: Final = say("This service cannot mail the link, so it is shown to you once.")
_LONGEST: Final = 100  # characters of a link


async def new(request: PageRequest, form: Form | None = None) -> Response:
    """Show the form that invites somebody."""
    form = form or _build_new(request, {"role": LEAST})
    return request.page("administrators/new.html", title=say("Invite an administrator"), form=form)


def _build_new(request: PageRequest, values: Mapping[str, Any]) -> Form:
    told = _MAILED if request.gate.environment.mails_links else _NOT_MAILED
    return build_role_form(request, values, NAME, LOGIN, EMAIL, email=told, id="form")


async def invite(request: PageRequest) -> Response:
    """Invite somebody. The link is mailed, or shown once."""
    form = _build_new(request, request.form)
    try:
        made = (await request.perform_once("admins.invite", form.raw())).value
    except Refused as refused:
        return await new(request, form.add_refusal(refused))
    return _show_link(request, made)


async def renew(request: PageRequest) -> Response:
    """Make a new link for somebody who has chosen no password yet. The link is mailed, or shown once."""
    raw = {BY_MAIL.name: request.form.get("show") != "1"}
    return _show_link(request, (await request.perform_once("admins.renew_invitation", raw, request.number("id"))).value)


def _show_link(request: PageRequest, invited: Mapping[str, Any]) -> Response:
    base = request.runner.settings.public_url or str(request.http.base_url).rstrip("/")
    link = f"{base}{PREFIX}/invitation/{invited['link']}" if "link" in invited else ""
    return request.page(
        "administrators/invited.html", title=say("{name} is invited", name=isolate(invited["name"])), admin=invited, link=link
    )


def _tell_withdrawn(_: Mapping[str, Any], result: Result) -> str:
    return say("The invitation was withdrawn. Its link no longer works.") if result.event or result.replayed else _NONE


_NONE: Final = say("There was no invitation to withdraw.")
_WITHDRAW: Final = Confirmation(
    section=_SECTION,
    action="withdraw-invitation",
    operation="admins.withdraw_invitation",
    title=mark("Withdraw the invitation of {name}"),
    button=say("Withdraw the invitation"),
    tone="danger",
    fetch=fetch_admin,
    tell=_tell_withdrawn,
    confirms=True,
    find_objection=lambda admin: "" if admin["invitedUntil"] else _NONE,
)


# --- behind the link ----------------------------------------------------------------------------------------------


async def show(request: PageRequest, form: Form | None = None) -> Response:
    """Ask the invited person for a password."""
    invited, form = await _find_invited(request), form or Form((PASSWORD,))
    if invited is None:
        return await _turn_away(request)
    is_owner, policy = invited.actor.permit is None, request.gate.environment.sign_on
    by_password = is_owner or not policy.owners_only
    title = say("Choose your password") if by_password else say("Sign in")
    return request.page("invitation.html", title=title, invited=invited, form=form, link=_link(request), by_password=by_password)


async def accept(request: PageRequest) -> Response:
    """Set the password of the invited person, and sign them in."""
    request.require_fresh_form()
    invited = await _find_invited(request)
    if invited is None:
        return await _turn_away(request)
    form, before = Form((PASSWORD,), request.form), request.me
    try:
        raw = {**form.raw(), "link": _link(request)}
        accepted = (await request.perform("admins.accept_invitation", raw, invited.id, actor=invited.actor)).value
    except Refused as refused:
        return await show(request, form.add_refusal(refused))  # which turns them away if it was used at the same time
    if await request.runner.read(has_second_step, invited.login):  # they had an account at the provider, and it was unlinked
        return ask_to_sign_in(request, "", note=say("Your password is set. Sign in with it and your second factor."))
    await start_session(request, Proven(invited.id, accepted["passwordMark"]), invited.login, Evidence())
    if before is not None:
        await request.runner.perform(end_session(request, before))
    return request.redirect("", say("Welcome, {name}. Nobody else knows your password.", name=isolate(invited.name)))


async def accept_by_sign_on(request: PageRequest) -> Response:
    """Send the invited person to the provider; their account there replaces a password."""
    request.require_fresh_form()
    if await _find_invited(request) is None:
        return await _turn_away(request)
    return await leave_with_invitation(request, _link(request))


def _link(request: PageRequest) -> str:
    return str(request.http.path_params["link"])[:_LONGEST]


async def _find_invited(request: PageRequest) -> Invited | None:
    return await request.runner.read(find_invited, _link(request))


async def _turn_away(request: PageRequest) -> Response:
    """Respond to a link that is wrong, used, withdrawn or expired: to all of them alike, and after many with a wait."""
    wait = await request.runner.read(find_wait_for_link, request.address)
    if not wait:
        await request.runner.write(count_wrong_link, request.address)
    response = request.page(
        "invitation_spent.html", status=429 if wait else 404, title=say("This invitation cannot be used"), wait=wait
    )
    if wait:
        response.headers["retry-after"] = str(wait)
    return response


PAGES: Final = (
    Page("GET", f"{_HERE}/new", new, _SECTION, needs=("admins.invite",), confirms=True),
    Page("POST", f"{_HERE}/new", invite, _SECTION, needs=("admins.invite",), confirms=True),
    Page("POST", _ONE, renew, _SECTION, needs=("admins.renew_invitation",), confirms=True),
    *_WITHDRAW.pages,
    Page("GET", _BEHIND, show, open=True),
    Page("POST", _BEHIND, accept, open=True),
    Page("POST", f"{_BEHIND}/sign-on", accept_by_sign_on, open=True),
)
