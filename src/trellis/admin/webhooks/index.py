"""Webhooks: the list, and making one."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.page import Page, Visit
from trellis.admin.webhooks.form import WebhookForm, name_of, words_of
from trellis.core.webhooks import MOST
from trellis.errors import Refused

_HERE: Final = "/webhooks"
_SECTION: Final = "webhooks"
_MADE: Final = (
    "This form has made a webhook already, and what stands in it now is something else. Send it again to make another one."
)


async def index(visit: Visit) -> Response:
    """List the webhooks."""
    listed = (await visit.perform("webhooks.list", {"perPage": MOST})).value["results"]
    environment = visit.house.gate.environment
    return visit.page(
        "webhooks/index.html",
        title="Webhooks",
        webhooks=[webhook | {"name": name_of(webhook), "words": words_of(webhook["events"], environment)} for webhook in listed],
        failing=[webhook["id"] for webhook in listed if webhook["state"] == "failing" or webhook["disabledBecause"]],
        full=len(listed) >= MOST,
    )


async def new(visit: Visit) -> Response:
    """Show the form for a new webhook."""
    visit.require_recent_password()
    return _form(visit, 200, WebhookForm(visit.house.gate.environment))


async def create(visit: Visit) -> Response:
    """Make a webhook and show its secret, once."""
    visit.require_recent_password()
    form = WebhookForm(visit.house.gate.environment, typed=visit.form)
    try:
        made = await visit.perform_once("webhooks.create", form.settings())
    except Refused as refused:
        if refused.status == 422:
            form.title = _MADE
            return _form(visit, 409, form, again=True)
        return _form(visit, 400, form.at_fault(refused))
    return shown_once(visit, made.value, "made")


def _form(visit: Visit, status: int, form: WebhookForm, *, again: bool = False) -> Response:
    return visit.page("webhooks/new.html", status=status, title="Make a webhook", form=form, once=visit.once(again=again))


def shown_once(visit: Visit, webhook: Mapping[str, Any], how: str) -> Response:
    """Show a secret, or, to a form that is sent again, that it was shown. `how` it came to be: made, rotated."""
    name = name_of(webhook)
    title = f"{name}: the secret" if "secret" in webhook else f"{name}: the secret was shown already"
    words = words_of(webhook["events"], visit.house.gate.environment)
    return visit.page("webhooks/once.html", title=title, webhook=webhook, name=name, words=words, how=how)


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/new", new, _SECTION),
    Page("POST", f"{_HERE}/new", create, _SECTION),
)
