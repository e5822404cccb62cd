"""Estimating the cost of parsing HTML, in which elements left open must be reopened in each block that follows."""

import re
from typing import Final

_MOST: Final = 100_000  # elements open at once, times tags: a tenth of a second to sanitise, at worst
_NAME: Final = r"[A-Za-z][-\w:]*"
_ATTRIBUTE: Final = r"""\s+[A-Za-z_:][-\w:.]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
# Elements whose content is raw text. Without any `<` in it, such an element ends at the first end tag.
_RAW: Final = rf"(?P<raw>(?i:iframe|noembed|noframes|script|style|textarea|title|xmp))(?:{_ATTRIBUTE})*\s*>[^<]*</(?i:(?P=raw))\s*>"
_TOKEN: Final = re.compile(
    rf"<(?:{_RAW}|(?P<start>{_NAME})(?:{_ATTRIBUTE})*\s*/?>|/(?P<end>{_NAME})\s*>|!--(?!-?>)(?:[^-]|-(?!-))*-->|(?P<other>[A-Za-z/!?]))",
    re.ASCII,  # as in HTML: other spaces are part of a name
)


def _names(line: str) -> frozenset[str]:
    return frozenset(line.split())


_NEVER_OPEN: Final = _names("area base br col embed hr img input link meta param source track wbr")
# The content of these elements is parsed by other rules, so an end tag in it need not close anything.
_OTHER_RULES: Final = _names(
    "body frameset head html iframe math noembed noframes noscript plaintext script select style svg template textarea title xmp"
)
# Elements whose end tags may be omitted, by the tags that close them.
_ENDED_BY: Final = (
    dict.fromkeys(_names("blockquote div dl h1 h2 h3 h4 h5 h6 hr ol p pre table ul /blockquote /div /li /td /th"), _names("p"))
    | dict.fromkeys(_names("li /ol /ul"), _names("li p"))
    | dict.fromkeys(_names("dd dt /dl"), _names("dd dt p"))
    | dict.fromkeys(_names("td th"), _names("p td th"))
    | dict.fromkeys(_names("tr /tr"), _names("p td th tr"))
    | dict.fromkeys(_names("tbody tfoot thead /table /tbody /tfoot /thead"), _names("p td th tr tbody tfoot thead"))
)


def find_cost(html: str) -> tuple[int, int] | None:
    """Return the number of tags and the most elements open at once if a text is too expensive to parse; otherwise None.

    A parser that follows the rules of browsers copies each formatting element that was left open into each block that follows, and
    searches all open elements at each tag, so time and memory grow with the product of the two numbers. The number of open elements
    is never lower than in a parser. It is higher if tags are not closed in order.

    Source: HTML Living Standard, 13.2.6.1 and 13.2.4.3 (reconstruct the active formatting elements).
    """
    tags = html.count("<")
    if tags * tags <= _MOST:
        return None
    most = _count_open(html)
    return (tags, most) if tags * most > _MOST else None


def _count_open(html: str) -> int:
    """Return the most elements open at once; the number of all tags if there is anything but plain tags and comments."""
    opened: list[str] = []
    most = 0
    for token in _TOKEN.finditer(html):
        start, end = token["start"], token["end"]
        name = (start or end or "").lower()
        if token["other"] or name in _OTHER_RULES:
            return html.count("<")
        if start:
            _end_elements(opened, name)
            if name not in _NEVER_OPEN:
                opened.append(name)
                most = max(most, len(opened))
        elif end:
            _end_elements(opened, f"/{name}", before=name)
            if opened and opened[-1] == name:
                opened.pop()
    return most


def _end_elements(opened: list[str], tag: str, before: str = "") -> None:
    """Close the innermost elements that a tag closes although they have no end tag, but not beyond an element named `before`."""
    ended = _ENDED_BY.get(tag, frozenset())
    while opened and opened[-1] in ended and opened[-1] != before:
        opened.pop()
