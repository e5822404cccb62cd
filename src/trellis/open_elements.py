"""How much HTML may cost to read: what is left open has to be opened again, by the rules of HTML, in each element that follows."""

import re
from typing import Final

_MOST: Final = 100_000  # elements open at once, times tags: a tenth of a second to sanitise, at worst
_NAME: Final = r"[A-Za-z][-\w:]*"
_ATTRIBUTE: Final = r"""\s+[A-Za-z_:][-\w:.]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'=<>`]+))?"""
# Elements whose text is read by no rules; one without any `<` in it ends where it seems to.
_RAW: Final = rf"(?P<raw>(?i:iframe|noembed|noframes|script|style|textarea|title|xmp))(?:{_ATTRIBUTE})*\s*>[^<]*</(?i:(?P=raw))\s*>"
_TOKEN: Final = re.compile(
    rf"<(?:{_RAW}|(?P<start>{_NAME})(?:{_ATTRIBUTE})*\s*/?>|/(?P<end>{_NAME})\s*>|!--(?!-?>)(?:[^-]|-(?!-))*-->|(?P<other>[A-Za-z/!?]))",
    re.ASCII,  # as HTML has it: other spaces are part of a name
)


def _names(line: str) -> frozenset[str]:
    return frozenset(line.split())


_NEVER_OPEN: Final = _names("area base br col embed hr img input link meta param source track wbr")
# What is within these is read by other rules, so that an end tag there need not end anything.
_OTHER_RULES: Final = _names(
    "body frameset head html iframe math noembed noframes noscript plaintext script select style svg template textarea title xmp"
)
# Elements whose end tags may be left out, by the tags that end them.
_ENDED_BY: Final = (
    dict.fromkeys(_names("blockquote div dl h1 h2 h3 h4 h5 h6 hr ol p pre table ul /blockquote /div /li /td /th"), _names("p"))
    | dict.fromkeys(_names("li /ol /ul"), _names("li p"))
    | dict.fromkeys(_names("dd dt /dl"), _names("dd dt p"))
    | dict.fromkeys(_names("td th"), _names("p td th"))
    | dict.fromkeys(_names("tr /tr"), _names("p td th tr"))
    | dict.fromkeys(_names("tbody tfoot thead /table /tbody /tfoot /thead"), _names("p td th tr tbody tfoot thead"))
)


def find_cost(html: str) -> tuple[int, int] | None:
    """Return how many tags a text has and how many elements it has open at once, if these are too many to be read; else None.

    Whoever parses HTML as browsers do copies each formatting element that was left open into each block that follows, and
    searches all elements that are open at each tag: time and memory grow with the product. The number of open elements is never
    less than what a parser has; it is more where tags are not closed in their order.

    Source: HTML Living Standard, 13.2.6.1 and 13.2.4.3 (reconstruct the active formatting elements).
    """
    tags = html.count("<")
    if tags * tags <= _MOST:
        return None
    most = _count_open(html)
    return (tags, most) if tags * most > _MOST else None


def _count_open(html: str) -> int:
    """Return how many elements are open at once; all that start, if there is anything but plain tags and comments."""
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
    """Close the innermost elements that a tag ends though they have no end tag, as far as the element it belongs to."""
    ended = _ENDED_BY.get(tag, frozenset())
    while opened and opened[-1] in ended and opened[-1] != before:
        opened.pop()
