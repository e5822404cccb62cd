"""The administrators: the list, disabling and enabling, and a new password for somebody who has lost theirs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.roles import describe_role
from trellis.admin.admins.sessions import fetch_admin, fetch_sessions
from trellis.admin.confirm import Confirmation
from trellis.admin.conflicts import VERSION, carry_version, compare_settings, fetch_last_events
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted, find_last_page
from trellis.admin.webhooks import fetch_made_webhooks
from trellis.core.admins import EMAIL, KEEP_WEBHOOKS, LOGIN, NAME, PASSWORD
from trellis.core.fields import isolate
from trellis.core.gate import Result
from trellis.core.operation import is_allowed
from trellis.core.version import fields_version
from trellis.errors import Refused
from trellis.sentences import join, mark, say

_HERE: Final = "/administrators"
_ROWS: Final = 100  # per page
_MAX_EVENTS: Final = 10  # that the page of an administrator shows


async def index(request: PageRequest) -> Response:
    """List the administrators."""
    page = await request.fetch("admins.list", {"page": request.query.get("page") or 1, "perPage": _ROWS})
    if (last := find_last_page(request.query, page)) is not None:
        return request.redirect(_HERE + last)
    roles = _describe_roles(request, page["results"])
    return request.page("administrators/index.html", title=say("Administrators"), page=page, roles=roles)


def _describe_roles(request: PageRequest, admins: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    titles = {kind.name: kind.title for kind in request.kinds}
    return {admin["id"]: describe_role(admin, titles) for admin in admins}


async def show(
    request: PageRequest, form: Form | None = None, password: Form | None = None, *, is_conflict: bool = False
) -> Response:
    """Show an administrator, with the forms that change them."""
    admin = await fetch_admin(request)
    form = form or _build_form(admin)
    password = password or _build_password_form()
    may_list = is_allowed(request.catalogue.find("admins.sessions"), request.actor, admin["id"])
    return request.page(
        "administrators/show.html",
        status=409 if is_conflict else max(form.status, password.status),
        title=admin["name"],
        admin=admin,
        role=_describe_roles(request, [admin])[admin["id"]],
        events=await fetch_last_events(request, "admins", admin["id"], _MAX_EVENTS),
        sessions=await fetch_sessions(request, admin["id"]) if may_list else [],
        mails=request.gate.environment.mails_links,
        form=form,
        version=carry_version(request, fields_version(admin, form.fields), is_conflict=is_conflict),
        theirs=compare_settings(form, admin, form.raw(), lambda _, value: value or say("none")) if is_conflict else None,
        password=password,
    )


def _build_form(values: Mapping[str, Any] | Submitted) -> Form:
    return Form((NAME, LOGIN, EMAIL), values, labels={"email": say("E-mail address")})


def _build_password_form(typed: Submitted | None = None) -> Form:
    return Form((PASSWORD,), typed, labels={"password": say("New password")}, id="password")


async def update(request: PageRequest) -> Response:
    """Change the name, login or e-mail address. Changing the login or address requires the password first."""
    form, number = _build_form(request.form), request.number("id")
    before = await request.fetch("admins.get", target=number)
    try:
        raw = form.raw()
        request.require_fresh_form()
        planned = await request.dry_run("admins.update", raw, number)
        if (planned["login"], planned["email"]) != (before["login"], before["email"]):
            request.require_recent_password()
        await request.perform("admins.update", raw, number, expected=tuple(request.form.all(VERSION)))
    except Refused as refused:
        if refused.status == 412 and not request.stale:
            return await show(request, form, is_conflict=True)
        return await show(request, form.add_refusal(refused))
    return request.redirect(f"{_HERE}/{number}", say("Saved."))


async def set_password(request: PageRequest) -> Response:
    """Set a new password for another administrator. One's own is changed on the account page, which asks for the current one."""
    request.require_fresh_form()
    if request.number("id") == request.signed_in.id:
        return request.redirect("/account", say("Change your own password here."), "note")
    request.require_recent_password()
    form = _build_password_form(request.form)
    try:
        result = await request.perform_once("admins.set_password", form.raw(), request.number("id"))
    except Refused as refused:
        return await show(request, password=form.add_refusal(refused))
    name, factors = result.value["name"], join((say(one) for one in result.value["secondFactors"]), ", ")
    message = say("{name} was signed out everywhere and must choose their own password at the next sign-in.", name=isolate(name))
    if factors:
        stay = say("Their second factors ({factors}) stay and are still required after the password.", factors=factors)
        message = join((message, stay))
    return request.redirect(f"{_HERE}/{request.number('id')}", message)


async def _fetch_with_webhooks(request: PageRequest) -> dict[str, Any]:
    """Return an administrator with the webhooks that they have made and that are on."""
    return {**await fetch_admin(request), "webhooks": await fetch_made_webhooks(request, "admin", request.number("id"))}


def _build_disable_form(typed: Submitted | None) -> Form:
    name = KEEP_WEBHOOKS.name
    note = say("They keep sending events to their endpoints.")
    return Form((KEEP_WEBHOOKS,), typed, labels={name: say("Keep these webhooks on")}, help={name: note})


def _tell_unlinked(_: Mapping[str, Any], result: Result) -> str:
    is_done = result.event or result.replayed
    return say("They can no longer sign in with their account at the provider.") if is_done else _NONE_LINKED


async def enable(request: PageRequest) -> Response:
    """Let an administrator sign in again."""
    result = await request.perform("admins.enable", target=request.number("id"))
    return request.redirect(f"{_HERE}/{request.number('id')}", say("{name} can sign in again.", name=isolate(result.value["name"])))


_SECTION: Final = "administrators"
_DISABLE: Final = Confirmation(
    section=_SECTION,
    action="disable",
    operation="admins.disable",
    title=mark("Disable {name}"),
    button=say("Disable"),
    tone="danger",
    fetch=_fetch_with_webhooks,
    build_form=_build_disable_form,
    tell=lambda admin, _: say("{name} was signed out and can no longer sign in.", name=isolate(admin["name"])),
    confirms=True,
    find_objection=lambda admin: say("This account is already disabled.") if admin["disabledAt"] else "",
)
_NONE_LINKED: Final = say("No account was linked.")
_UNLINK: Final = Confirmation(
    section=_SECTION,
    action="unlink",
    operation="admins.unlink_identity",
    title=mark("Unlink the account of {name} at the provider"),
    button=say("Unlink"),
    tone="danger",
    fetch=fetch_admin,
    tell=_tell_unlinked,
    confirms=True,
    find_objection=lambda admin: "" if admin["identities"] else _NONE_LINKED,
)
PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, needs=("admins.list",)),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION, needs=("admins.get",)),
    Page("POST", f"{_HERE}/{{id:int}}", update, _SECTION, needs=("admins.update",)),
    Page("POST", f"{_HERE}/{{id:int}}/password", set_password, _SECTION, needs=("admins.set_password",)),
    *_DISABLE.pages,
    *_UNLINK.pages,
    Page("POST", f"{_HERE}/{{id:int}}/enable", enable, _SECTION, needs=("admins.enable",), confirms=True),
)
