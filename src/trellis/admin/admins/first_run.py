"""The first run: the one-time link, and the page behind it where the first administrator is created."""

from typing import Final

from starlette.responses import Response

from trellis.admin.admins.sign_in import start_session
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.core.actor import Actor
from trellis.core.admins import LOGIN, NAME, PASSWORD, Proven, is_first_run_token
from trellis.core.factors import Evidence
from trellis.core.fields import isolate
from trellis.errors import Refused
from trellis.sentences import say

_ACTOR: Final = Actor("terminal", None, "one-time link")
_FIELDS: Final = (NAME, LOGIN, PASSWORD)
_TITLE: Final = say("Create the first administrator")
_SPENT: Final = say("This link cannot be used")


async def show(request: PageRequest) -> Response:
    """Show the form, if the link is valid."""
    if not await request.runner.read(is_first_run_token, request.http.path_params["link"]):
        return request.page("link_spent.html", status=404, title=_SPENT)
    return request.page("first_run.html", title=_TITLE, form=Form(_FIELDS))


async def create(request: PageRequest) -> Response:
    """Create the first administrator, and sign them in."""
    if not await request.runner.read(is_first_run_token, request.http.path_params["link"]):
        return request.page("link_spent.html", status=409, title=_SPENT)
    form = Form(_FIELDS, request.form)
    try:
        raw = form.raw() | {"link": request.http.path_params["link"]}
        admin = (await request.perform("admins.begin", raw, actor=_ACTOR)).value
    except Refused as refused:
        if refused.status == 409:
            return request.page("link_spent.html", status=409, title=_SPENT)
        return request.page("first_run.html", title=_TITLE, form=form.add_refusal(refused))
    await start_session(request, Proven(admin["id"], admin["passwordMark"]), admin["login"], Evidence())
    return request.redirect("", say("Welcome, {name}. You are the first administrator.", name=isolate(admin["name"])))


PAGES: Final = (
    Page("GET", "/first-run/{link}", show, open=True),
    Page("POST", "/first-run/{link}", create, open=True),
)
