"""The Link header (RFC 8288): where the other pages of an answer are."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode


def links_of(verb: str | None, here: str, query: bytes, answer: Mapping[str, Any]) -> bytes:
    """Write the links of a list or of the feed, served at `here` for this query; nothing where there are none."""
    if verb == "list":
        return _links(here, query, "page", _pages(answer))
    if verb == "feed" and answer["more"]:
        return _links(here, query, "after", {"next": answer["next"]})
    return b""


def _pages(page: Mapping[str, Any]) -> dict[str, int]:
    at, last = page["page"], page["totalPages"]
    numbers = {"first": 1, "prev": min(at - 1, last), "next": at + 1 if at < last else 0, "last": last}
    return {rel: to for rel, to in numbers.items() if to >= 1}


def _links(here: str, query: bytes, parameter: str, targets: Mapping[str, int]) -> bytes:
    sent = parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else []
    kept = "".join(f"{urlencode((pair,))}&" for pair in sent if pair[0] not in {parameter, "key"})
    return ", ".join([f'<{here}?{kept}{parameter}={to}>; rel="{rel}"' for rel, to in targets.items()]).encode("latin-1")
