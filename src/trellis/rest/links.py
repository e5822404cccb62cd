"""The Link header (RFC 8288), with the URLs of the other pages."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from trellis.core.verbs import Response

LONGEST: Final = 4096  # bytes; nginx refuses responses with longer headers unless configured otherwise, and Node from 16 KiB on


def build_links(response: Response, here: str, query: bytes, answer: Mapping[str, Any]) -> bytes:
    """Return the links of a page or of the feed, served at `here` for this query; empty if there are none.

    Each link repeats the query. If the links together exceed LONGEST, only that to the next page is kept: the others follow from
    the answer.
    """
    if response not in _TARGETS:
        return b""
    parameter, find_targets = _TARGETS[response]
    targets = find_targets(answer)
    links = _format_links(here, query, parameter, targets)
    if len(links) <= LONGEST:
        return links
    return _format_links(here, query, parameter, {rel: to for rel, to in targets.items() if rel == "next"})


def _page_targets(page: Mapping[str, Any]) -> dict[str, int]:
    at, last = page["page"], page["totalPages"]
    numbers = {"first": 1, "prev": min(at - 1, last), "next": at + 1 if at < last else 0, "last": last}
    return {rel: to for rel, to in numbers.items() if to >= 1}


def _feed_targets(feed: Mapping[str, Any]) -> dict[str, int]:
    return {"next": feed["next"]} if feed["more"] else {}


_TARGETS: Final[Mapping[Response, tuple[str, Callable[[Mapping[str, Any]], dict[str, int]]]]] = {
    Response.PAGE: ("page", _page_targets),
    Response.FEED: ("after", _feed_targets),
}


def _format_links(here: str, query: bytes, parameter: str, targets: Mapping[str, int]) -> bytes:
    sent = parse_qsl(query.decode(), keep_blank_values=True) if query else []
    kept = "".join(f"{urlencode((pair,))}&" for pair in sent if pair[0] not in {parameter, "key"})
    return ", ".join([f'<{here}?{kept}{parameter}={to}>; rel="{rel}"' for rel, to in targets.items()]).encode("latin-1")
