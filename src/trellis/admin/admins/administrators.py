"""The administrators: who there is, adding one, disabling and enabling, a new password for one who has lost theirs."""

from typing import Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, Visit
from trellis.core.admins import LOGIN, NAME, PASSWORD
from trellis.errors import Refused

_HERE: Final = "/administrators"
_FIELDS: Final = (NAME, LOGIN, PASSWORD)


async def index(visit: Visit) -> Response:
    """List all administrators."""
    found = await visit.perform("admins.list", {"perPage": 1000})
    return visit.page("administrators/index.html", title="Administrators", page=found.value)


async def new(visit: Visit) -> Response:
    """Show the form for another one."""
    visit.require_recent_password()
    return visit.page("administrators/new.html", title="Add an administrator", form=Form(_FIELDS))


async def create(visit: Visit) -> Response:
    """Add one."""
    visit.require_recent_password()
    form = Form(_FIELDS, visit.form)
    try:
        made = await visit.perform("admins.create", form.raw())
    except Refused as refused:
        return visit.page("administrators/new.html", status=400, title="Add an administrator", form=form.at_fault(refused))
    return visit.redirect(_HERE, f"{made.value['name']} can sign in now, as {made.value['login']}.")


async def show(visit: Visit) -> Response:
    """Show one, with what can be done."""
    return await _shown(visit, 200, None, None)


async def _shown(visit: Visit, status: int, form: Form | None, password: Form | None) -> Response:
    admin = (await visit.perform("admins.get", target=visit.number("id"))).value
    events = await visit.perform("events.list", {"resource": "admins", "resourceId": admin["id"], "order": "newest", "limit": 10})
    return visit.page(
        "administrators/show.html",
        status=status,
        title=admin["name"],
        admin=admin,
        events=events.value["results"],
        form=form or Form((NAME, LOGIN), admin),
        password=password or Form((PASSWORD,), labels={"password": "New password"}, id="password"),
    )


async def update(visit: Visit) -> Response:
    """Change name or login."""
    form = Form((NAME, LOGIN), visit.form)
    try:
        answer = await visit.perform("admins.update", form.raw(), visit.number("id"))
    except Refused as refused:
        return await _shown(visit, 400, form.at_fault(refused), None)
    said = "Saved." if answer.event else "Nothing was changed."
    return visit.redirect(f"{_HERE}/{visit.number('id')}", said)


async def set_password(visit: Visit) -> Response:
    """Give one a new password."""
    visit.require_recent_password()
    form = Form((PASSWORD,), visit.form, labels={"password": "New password"}, id="password")
    try:
        answer = await visit.perform("admins.set_password", form.raw(), visit.number("id"))
    except Refused as refused:
        return await _shown(visit, 400, None, form.at_fault(refused))
    if visit.me is not None and answer.value["id"] == visit.me.id:
        visit.remember_session(await visit.sessions.begin(visit.me.id, visit.address, visit.request.headers.get("user-agent", "")))
    return visit.redirect(
        f"{_HERE}/{visit.number('id')}", f"{answer.value['name']} has a new password and was signed out everywhere."
    )


async def disable(visit: Visit) -> Response:
    """End one's sessions and let them in no more."""
    if visit.me is not None and visit.number("id") == visit.me.id:
        raise Refused("CANNOT_DELETE", "You cannot disable yourself. Have another administrator do it.")
    answer = await visit.perform("admins.disable", target=visit.number("id"))
    return visit.redirect(f"{_HERE}/{visit.number('id')}", f"{answer.value['name']} is signed out and cannot sign in any more.")


async def enable(visit: Visit) -> Response:
    """Let one in again."""
    visit.require_recent_password()
    answer = await visit.perform("admins.enable", target=visit.number("id"))
    return visit.redirect(f"{_HERE}/{visit.number('id')}", f"{answer.value['name']} can sign in again.")


_SECTION: Final = "administrators"
PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/new", new, _SECTION),
    Page("POST", f"{_HERE}/new", create, _SECTION),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}", update, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}/password", set_password, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}/disable", disable, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}/enable", enable, _SECTION),
)
