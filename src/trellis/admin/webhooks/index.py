"""Webhooks: the list, and creating one."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.page import Page, PageRequest
from trellis.admin.webhooks.form import WebhookForm, describe_webhook
from trellis.admin.webhooks.names import fetch_webhooks
from trellis.core.fields import isolate
from trellis.core.webhooks import MOST
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/webhooks"
_SECTION: Final = "webhooks"


async def index(request: PageRequest) -> Response:
    """List the webhooks."""
    listed = await fetch_webhooks(request)
    return request.page(
        "webhooks/index.html",
        title=say("Webhooks"),
        webhooks=[describe_webhook(webhook, request.gate.environment) for webhook in listed],
        failing=[webhook["id"] for webhook in listed if webhook["state"] == "failing" or webhook["disabledBecause"]],
        full=len(listed) >= MOST,
    )


async def new(request: PageRequest, form: WebhookForm | None = None) -> Response:
    """Show the form for a new webhook."""
    form = form or WebhookForm(request.gate.environment)
    return request.page("webhooks/new.html", title=say("Create a webhook"), form=form)


async def create(request: PageRequest) -> Response:
    """Create a webhook and show its secret, once."""
    form = WebhookForm(request.gate.environment, typed=request.form)
    try:
        created = await request.perform_once("webhooks.create", form.settings())
    except Refused as refused:
        return await new(request, form.add_refusal(refused))
    return show_secret(request, created.value, "created")


def show_secret(request: PageRequest, webhook: Mapping[str, Any], how: str) -> Response:
    """Show a new secret or, if the form was sent again, that it was shown before. `how` is how it was made: created or rotated."""
    described = describe_webhook(webhook, request.gate.environment)
    name = isolate(described["name"])
    is_new = "secret" in webhook
    title = say("{name}: the secret", name=name) if is_new else say("{name}: the secret has already been shown", name=name)
    return request.page("webhooks/secret.html", title=title, webhook=described, how=how)


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, needs=("webhooks.list",)),
    Page("GET", f"{_HERE}/new", new, _SECTION, needs=("webhooks.create",), confirms=True),
    Page("POST", f"{_HERE}/new", create, _SECTION, needs=("webhooks.create",), confirms=True),
)
