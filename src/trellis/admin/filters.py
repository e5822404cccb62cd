"""What the pages on the logs share: filters that stand in the address, and going on where a page has ended."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.admin.page import Submitted, Visit

_MOMENTS: Final = ("from", "to")
_MOST_KEYS: Final = 200


def filters(visit: Visit) -> Submitted:
    """Give the filters of an address without the empty ones; moments as the controls of a form take them."""
    pairs = ((name, value.strip()) for name, value in visit.query.items())
    return Submitted((name, _minute(value) if name in _MOMENTS else value) for name, value in pairs if value)


def _minute(value: str) -> str:
    return value[:16] if value.endswith("Z") else value


async def key_names(visit: Visit) -> dict[int, str]:
    """Give the names of the newest keys by id."""
    found: Mapping[str, Any] = (await visit.perform("keys.list", {"perPage": _MOST_KEYS, "order": "newest"})).value
    return {key["id"]: key["name"] for key in found["results"]}
