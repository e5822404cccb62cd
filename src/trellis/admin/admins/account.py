"""One's own account: the password, the mail about alarms, and the sessions with a sign-out for each."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.appearance import build_view_form
from trellis.admin.admins.checking import CheckResult, check_login, clear_failed_attempts
from trellis.admin.admins.sessions import end_session as end_one
from trellis.admin.admins.sessions import fetch_sessions
from trellis.admin.conflicts import VERSION, carry_version, compare_settings
from trellis.admin.forms import Form
from trellis.admin.page import CHOOSE, FIRST_STEPS, Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.actor import Actor
from trellis.core.admins import ALL, EMAIL, MAILED_ALARMS, PASSWORD, Proven
from trellis.core.alarms import ALARMS
from trellis.core.fields import Field, Text
from trellis.core.operation import Call
from trellis.core.version import fields_version
from trellis.errors import Refused, refuse_fault
from trellis.sentences import format_seconds, join, say

_HERE: Final = "/account"
_CURRENT: Final = Field("currentPassword", Text(255), say("The password you signed in with."), required=True)
_FIELDS: Final = (_CURRENT, PASSWORD)
_ALARMS: Final = MAILED_ALARMS.name
_READER: Final = Actor("service", None, "account", frozenset({"events.list"}))  # some may not read the events of their own account
_JUST: Final = timedelta(minutes=1)
_OF_MAIL: Final = (EMAIL.name, _ALARMS)
_NAMES: Final = tuple(rule.name for rule in ALARMS)


def _form(request: PageRequest, typed: Submitted | None = None) -> Form:
    return Form(
        _FIELDS if request.signed_in.has_password else (PASSWORD,),
        typed,
        widgets={"currentPassword": "password"},
        labels={"password": say("New password"), _CURRENT.name: say("Current password")},
    )


async def show(request: PageRequest, form: Form | None = None, mail: Form | None = None, *, is_conflict: bool = False) -> Response:
    """Show the account, or one of its forms again."""
    form = form or _form(request)
    me = await request.fetch("admins.get", target=request.signed_in.id)
    wanted = me["mailedAlarms"] if mail is None else request.form.all(_ALARMS)
    return request.page(
        "account.html",
        status=409 if is_conflict else mail.status if mail else form.status,
        title=say("Your account"),
        form=form,
        sessions=await fetch_sessions(request, request.signed_in.id),
        view=build_view_form(request),
        identities=me["identities"],
        mail=(mail or _mail_form(me)) if request.gate.environment.has_mail else None,
        version=carry_version(request, fields_version(me, _OF_MAIL), is_conflict=is_conflict),
        theirs=_compare_mail(mail, me, wanted) if mail is not None and is_conflict else None,
        mailed=[(rule.name, rule.label, rule.name in wanted or ALL in wanted) for rule in ALARMS],
    )


def _compare_mail(mail: Form, me: Mapping[str, Any], wanted: Collection[str]) -> tuple[tuple[str, str, str], ...]:
    """Compare the address and alarms that were saved in the meantime with those that were typed."""

    def list_alarms(names: Collection[str]) -> str:
        return join((say(rule.label) for rule in ALARMS if rule.name in names or ALL in names), ", ") or say("none")

    alarms = (say("Alarms by mail"), list_alarms(me[_ALARMS]), list_alarms(wanted))
    address = compare_settings(mail, me, mail.raw(), lambda _, value: value or say("none"))
    return (*address, alarms) if alarms[1] != alarms[2] else address


def _mail_form(values: Mapping[str, Any] | Submitted) -> Form:
    told = say("Use an address that you can read even if somebody else signs in as you.")
    return Form((EMAIL,), values, labels={"email": say("E-mail address")}, help={"email": told}, id="mail")


async def set_mail(request: PageRequest) -> Response:
    """Change the mail address, and which alarms are mailed. Ticking all alarms includes the alarms of later releases."""
    request.require_fresh_form()
    form = _mail_form(Submitted([(EMAIL.name, request.form.get(EMAIL.name, ""))]))  # the boxes are read separately
    try:
        ticked = [name for name in _NAMES if name in request.form.all(_ALARMS)]
        raw = {**form.raw(), _ALARMS: [ALL] if len(ticked) == len(_NAMES) else ticked}
        await request.perform("admins.update", raw, request.signed_in.id, expected=tuple(request.form.all(VERSION)))
    except Refused as refused:
        if refused.status == 412:
            return await show(request, mail=form, is_conflict=True)
        return await show(request, mail=form.add_refusal(refused))
    return request.redirect(_HERE, say("Saved."))


async def set_password(request: PageRequest) -> Response:
    """Change one's own password; all other sessions end."""
    form = _form(request, request.form)
    me = request.signed_in
    if request.stale and await _has_just_changed_it(request):
        return request.redirect(
            _HERE, say("Your password was changed a moment ago. To change it once more, enter it again."), "note"
        )
    try:
        raw = form.raw()
        current = raw.pop("currentPassword", "")
        request.require_fresh_form()
        if me.has_factor or not me.has_password:
            request.require_recent_password()
        attempt = await check_login(request, me.login, current) if me.has_password else CheckResult(Proven(me.id))
        if attempt.wait:
            form.add_fault(_CURRENT.name, say("Too many attempts: wait {wait}.", wait=format_seconds(attempt.wait)))
            form.status = 429
            return await show(request, form)
        if attempt.proven is None:
            raise refuse_fault(_CURRENT.name, "INVALID_VALUE", say("currentPassword is not your password."))
        await _replace_password(request, raw)
        if not me.has_factor:
            await clear_failed_attempts(request, me.login)
    except Refused as refused:
        return await show(request, form.add_refusal(refused))
    return request.redirect(_HERE, say("Your password was changed, and you are signed out everywhere else."))


async def _has_just_changed_it(request: PageRequest) -> bool:
    """Return whether this administrator has just changed their password: a form was most likely sent twice."""
    about = {"resource": "admins", "resourceId": request.signed_in.id, "order": "newest", "limit": 1}
    found = (await request.runner.perform(Call("events.list", _READER, about))).value["results"]
    return any(
        one["operation"] == "admins.set_password" and request.actor.is_named(one["actor"]) and one["at"] > request.gate.ago(_JUST)
        for one in found
    )


async def _replace_password(request: PageRequest, raw: Mapping[str, Any]) -> None:
    """Set one's own password, which ends all other sessions and gives this one a new cookie. Raises Refused."""
    me = request.signed_in
    result = await request.perform("admins.set_password", {**raw, "session": me.session_id}, me.id)
    request.take_session(result.value["token"])


async def ask_password_first(request: PageRequest) -> Response:
    """Ask for the password and the second factor before one's own password is changed."""
    return request.redirect(_HERE)


async def end_session(request: PageRequest) -> Response:
    """Sign out one of one's own sessions."""
    ended = await end_one(request, request.signed_in.id, request.http.path_params["session"])
    return request.redirect(_HERE, say("That session is signed out.") if ended else say("That session had already ended."))


async def end_others(request: PageRequest) -> Response:
    """Sign out all of one's own sessions but this one."""
    me = request.signed_in
    await request.perform("admins.sign_out", {"everywhere": True, "but": me.session_id}, me.id)
    return request.redirect(_HERE, say("You are signed out everywhere else."))


# --- a password that somebody else has chosen ---------------------------------------------------------------------


def _new_form(typed: Submitted | None = None) -> Form:
    return Form((PASSWORD,), typed, labels={"password": say("New password")})


async def new_password(request: PageRequest, form: Form | None = None) -> Response:
    """Ask for a new password to replace one that somebody else has chosen."""
    if not request.signed_in.must_change_password:
        return request.redirect("")
    request.require_recent_password()
    form = form or _new_form()
    return request.page("new_password.html", title=say("Choose your own password"), form=form)


async def set_new_password(request: PageRequest) -> Response:
    """Set the new password, and go on to the panel."""
    if not request.signed_in.must_change_password:  # the form was sent twice
        return request.redirect("")
    request.require_fresh_form()
    request.require_recent_password()
    form = _new_form(request.form)
    try:
        await _replace_password(request, form.raw())
    except Refused as refused:
        return await new_password(request, form.add_refusal(refused))
    return request.redirect("", say("Your password is set. Nobody else knows it."))


PAGES: Final = (
    Page("GET", CHOOSE, new_password, before=FIRST_STEPS),
    Page("POST", CHOOSE, set_new_password, before=FIRST_STEPS, renews=True),
    Page("GET", _HERE, show, "account"),
    Page("GET", f"{_HERE}/password", ask_password_first, "account", confirms=True),
    Page("POST", f"{_HERE}/password", set_password, "account", renews=True),
    Page("POST", f"{_HERE}/mail", set_mail, "account", confirms=True),
    Page("POST", f"{_HERE}/sessions/others", end_others, "account", confirms=True),
    Page("POST", f"{_HERE}/sessions/{{session}}", end_session, "account"),
)
