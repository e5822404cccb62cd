"""The first run: the page behind the one-time link, where the first administrator is made."""

from typing import Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, Visit
from trellis.core.actor import Actor
from trellis.core.admins import LOGIN, NAME, PASSWORD, hash_token
from trellis.errors import Refused
from trellis.store.admins import administrators

_ACTOR: Final = Actor("terminal", None, "one-time link")
_FIELDS: Final = (NAME, LOGIN, PASSWORD)
_TITLE: Final = "Make yourself the first administrator"


async def show(visit: Visit) -> Response:
    """Show the form, if the link is good."""
    digest, now = hash_token(visit.request.path_params["link"]), visit.now
    good = await visit.read(lambda tx: not administrators.count(tx) and administrators.is_valid_link(tx, digest, now))
    if not good:
        return visit.page("link_spent.html", status=404, title="This link cannot be used")
    return visit.page("first_run.html", title=_TITLE, form=Form(_FIELDS))


async def begin(visit: Visit) -> Response:
    """Make the first administrator, and sign them in."""
    form = Form(_FIELDS, visit.form)
    try:
        raw = form.raw() | {"link": visit.request.path_params["link"]}
        made = await visit.perform("admins.begin", raw, actor=_ACTOR)
    except Refused as refused:
        if refused.status == 409:
            return visit.page("link_spent.html", status=409, title="This link cannot be used")
        return visit.page("first_run.html", status=400, title=_TITLE, form=form.at_fault(refused))
    token = await visit.sessions.begin(made.value["id"], visit.address, visit.request.headers.get("user-agent", ""))
    known = await visit.sessions.remember(made.value["login"], "")
    visit.remember_session(token)
    visit.cookies += [("browser", known, 90 * 86_400), ("visitor", "", 0)]
    return visit.redirect("", f"Welcome, {made.value['name']}. You are the first administrator.")


PAGES: Final = (
    Page("GET", "/first-run/{link}", show, open=True),
    Page("POST", "/first-run/{link}", begin, open=True),
)
