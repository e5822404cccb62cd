"""What HTML costs to read: no text that passes grows when it is sanitised, and what people write passes."""

import re

import nh3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis import open_elements
from trellis.open_elements import find_cost

LONGEST = 100_000
START_TAG = re.compile("<[a-z]")
NAMES = ("a", "b", "i", "font", "code", "div", "p", "li", "dd", "ul", "table", "tr", "td", "button", "h1", "svg", "select", "x")
PIECES = st.sampled_from(
    [
        *(f"<{name}>" for name in NAMES),
        *(f"</{name}>" for name in NAMES),
        *(f"<{name} title={{}}>" for name in NAMES[:5]),
        '<b title="</b>">',
        "<b '><i title={}>",
        "<!-- </b> -->",
        "<!--><i title={}>",
        "<i/title={}>",
        "</b\xa0>",
        "</b x>",
        "<lin\u212a>",
        "<style>b {{}}</style>",
        "<iframe src=x></iframe>",
        "<title>x</b></title>",
        "<br>",
        "x",
    ]
)


def repeat(piece: str, before: str = "") -> str:
    return before + piece * ((LONGEST - len(before)) // len(piece))


def number(piece: str, count: int) -> str:
    return "".join(piece.format(at) for at in range(count))


ROW = '<tr><td>7</td><td class="right"><a href="https://example.com/7">Seven</a></td><td><b>&amp;</b><br></td></tr>\n'


@pytest.mark.parametrize(
    "html",
    [
        repeat("<p>One <b>bold</b> word.</p>\n"),
        repeat("<p>One <b>bold</b> word.\n"),
        repeat("<li><a href='/x'>A link</a> <img src=x.png>\n", "<ul>"),
        repeat("<dt>Word<dd>What <i>it</i> means", "<dl>"),
        repeat(ROW, "<div><table><tbody>"),
        repeat("<tr><td>1<td>2<td><b>3</b>", "<table>"),
        repeat("<ul><li>One<li>Two</ul><p>"),
        repeat("<table><tr><th>One<td>Two<tbody></table>"),
        repeat("<!-- a remark --><p>x</p>"),
        repeat("<p><div><b><i>x</i></b></div></p>"),
        repeat("a < b and b > a; "),
        "<style>p > b { color: red }</style>" + repeat("<p><b>x</b> <iframe src=x></iframe></p>", "<div>"),
        "<b>" * 300,
    ],
)
def test_what_people_write_passes(html: str) -> None:
    assert find_cost(html) is None


@pytest.mark.parametrize(
    "html",
    [
        repeat("<div>"),
        repeat("<div>", "x") + "</div>" * 9_000,
        repeat("<li><dd>"),
        repeat("<ul>"),
        repeat("<p>x", "<p>" + number("<b title={}>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}><table></b></table>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={} a='</b>'>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}><!-- </b> -->", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}><textarea></b></textarea>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}></b\xa0>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}><STYLE></b></style>", 1_000)),
        repeat("<p>x", "<p>" + number("<b title={}><style></title></b></style>", 1_000)),
        repeat("<p>x", "<p>" + number("<lin\u212a>", 1_000)),
        repeat("<p>x", "<i '>" + number("<b title={}>", 1_000) + "'>"),
        repeat("</p>x", "<p>" + number("<b title={}>", 1_000)),
        number("<html a{}=1>", 7_000),
    ],
)
def test_what_would_take_a_parser_long_is_told(html: str) -> None:
    assert find_cost(html) is not None


TAILS = ["<p>x", "</p>x", "<div>x</div>"]


@settings(max_examples=400)
@given(pieces=st.lists(PIECES, min_size=1, max_size=6), times=st.integers(1, 60), tail=st.sampled_from(TAILS))
def test_what_passes_does_not_grow(pieces: list[str], times: int, tail: str) -> None:
    """Each tag opens at most what was open before it once more: what `find_cost` bounds."""
    html = "<p>" + "".join(piece.format(at) for at, piece in enumerate(pieces * times)) + tail * 40
    assert len(START_TAG.findall(nh3.clean(html))) <= html.count("<") * (open_elements._count_open(html) + 1)
