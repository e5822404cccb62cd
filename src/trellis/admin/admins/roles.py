"""Roles of administrators: the part of a form that chooses a role, and the pages that change one."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.sessions import fetch_admin
from trellis.admin.conflicts import VERSION, carry_version, compare_settings
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.core.admins import KINDS, ROLE
from trellis.core.fields import Field, isolate
from trellis.core.roles import find_role
from trellis.core.version import fields_version
from trellis.errors import Refused
from trellis.sentences import join, say

_LABELS: Final = {"role": say("Role"), "kinds": say("For these kinds"), "email": say("E-mail address")}
_HELP: Final = {"role": "", "kinds": say("For structure editors. Tick none to allow all kinds; only then are groups included.")}
LEAST: Final = "auditor"
_HERE: Final = "/administrators/{id:int}/role"


def build_role_form(request: PageRequest, values: Mapping[str, Any], *others: Field, email: str = "", id: str = "role") -> Form:
    """Build the form that chooses a role, after `others`; `email` is the help for an e-mail address."""
    return Form(
        (*others, ROLE, KINDS),
        values,
        widgets={"role": "radio", "kinds": "groups"},
        labels=_LABELS,
        help=_HELP | {"email": email},
        choices={"kinds": [(kind.name, kind.title) for kind in request.kinds if not kind.is_group]},
        id=id,
    )


def describe_role(admin: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return the role of an administrator in words."""
    title = say(find_role(admin["role"]).title)
    some = join((say(titles.get(name, name).lower()) for name in admin["kinds"]), ", ")
    return say("{title} ({kinds})", title=title, kinds=some) if some else title


async def show(request: PageRequest, form: Form | None = None, *, is_conflict: bool = False) -> Response:
    """Ask for the role of an administrator. Requires that the password was entered recently."""
    admin = await fetch_admin(request)
    form = form or build_role_form(request, admin)
    title = say("The role of {name}", name=isolate(admin["name"]))
    return request.page(
        "administrators/role.html",
        status=409 if is_conflict else None,
        title=title,
        admin=admin,
        form=form,
        version=carry_version(request, fields_version(admin, form.fields), is_conflict=is_conflict),
        theirs=_compare(request, form, admin) if is_conflict else None,
    )


def _compare(request: PageRequest, form: Form, admin: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Compare the role that was given in the meantime with the one that was typed."""
    titles = {kind.name: say(kind.title) for kind in request.kinds}

    def format_value(name: str, value: Any) -> str:
        if name == ROLE.name:
            return say(find_role(value).title)
        return join((titles.get(one, one) for one in value if one), ", ") or say("all")

    return compare_settings(form, admin, form.raw(), format_value)


async def give(request: PageRequest) -> Response:
    """Give an administrator another role."""
    admin = await fetch_admin(request)
    form = build_role_form(request, request.form)
    try:
        result = await request.perform("admins.set_role", form.raw(), admin["id"], expected=tuple(request.form.all(VERSION)))
    except Refused as refused:
        if refused.status == 412 and not request.stale:
            return await show(request, form, is_conflict=True)
        return await show(request, form.add_refusal(refused))
    name, title = isolate(admin["name"]), say(find_role(result.value["role"]).word)
    told = say("The role of {name} is {title} as of the next request.", name=name, title=title)
    own = admin["id"] == request.signed_in.id
    return request.redirect("/account" if own else f"/administrators/{admin['id']}", told)


PAGES: Final = (
    Page("GET", _HERE, show, "administrators", needs=("admins.set_role",), confirms=True),
    Page("POST", _HERE, give, "administrators", needs=("admins.set_role",), confirms=True),
)
