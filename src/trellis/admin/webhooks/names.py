"""Names for webhooks, which have none of their own, and the webhooks of an actor by name."""

from collections.abc import Mapping
from typing import Any

from trellis.admin.page import PageRequest
from trellis.core.webhooks import MOST


def webhook_name(webhook: Mapping[str, Any]) -> str:
    """Return a name for a webhook: its description, or its address without the scheme."""
    return str(webhook["description"] or webhook["url"].partition("://")[2]).strip()[:80]


async def fetch_webhooks(request: PageRequest) -> list[dict[str, Any]]:
    """Return all webhooks, each with a `name`."""
    webhooks = (await request.fetch("webhooks.list", {"perPage": MOST}))["results"]
    return [{**one, "name": webhook_name(one)} for one in webhooks]


async def fetch_made_webhooks(request: PageRequest, actor_type: str, actor: int) -> list[dict[str, Any]]:
    """Return the enabled webhooks that an actor has created, each with a `name`."""
    made = [one for one in await fetch_webhooks(request) if one["enabled"] and one["maker"]]
    return [one for one in made if (one["maker"]["type"], one["maker"]["id"]) == (actor_type, actor)]
