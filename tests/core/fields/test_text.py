"""Text, HTML, passwords, colours and addresses: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trellis.core.fields import Color, Html, Invalid, IpAddress, Password, Text, Type, Url
from trellis.core.passwords import NODE, Plain

LINE, PAGE, NAME = Text(10), Text(50, lines=True), Text(255, 1, missing="NO_TITLE")


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (LINE, "  News\n", "News"),
        (LINE, "", ""),
        (LINE, "x" * 10, "x" * 10),
        (PAGE, "one\r\n\ttwo", "one\r\n\ttwo"),
        (Html(), '<p onclick="x()">Hi<script>alert(1)</script></p>', "<p>Hi</p>"),
        (Html(), "<script>alert(1)</script> Hi ", "Hi"),
        (Html(), "a&#1;b", "ab"),
        (Color(), " #3b82f6 ", "#3B82F6"),
        (Url(), "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        (Url(), "HTTP://[::1]:8000/", "HTTP://[::1]:8000/"),
        (Url(), None, None),
        (Url(), "", None),
        (Password(), " spaces count ", Plain(" spaces count ", NODE)),
        (Password(), None, None),
        (Password(), "", None),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (LINE, 7, "must be text, not 7."),
        (LINE, None, "must be text, not null."),
        (LINE, "x" * 11, "is 11 characters long; at most 10 are allowed."),
        (LINE, "a\x00b", "must not contain control characters; there is U+0000 at offset 1."),
        (LINE, "a\nb", "must not contain control characters; there is U+000A at offset 1."),
        (LINE, "a\u2028b", "must not contain control characters; there is U+2028 at offset 1."),
        (PAGE, "a\ud800b", "must not contain control characters; there is U+D800 at offset 1."),
        (Html(50), "&" * 11, "at most 50 are allowed"),  # 11 characters as sent, 55 as they would be kept
        (Html(), "<div>" * 20_000, "has 20,000 tags, and up to 20,000 elements are open at once. Close each element"),
        (Color(), "#3b82f", "must be a colour as #RRGGBB"),
        (Color(), "red", "must be a colour as #RRGGBB, such as #3B82F6, not 'red'."),
        *(
            (Url(), raw, "must be an http or https URL")
            for raw in (
                "javascript:alert(1)",
                "//example.com",
                "https://",
                "https://a b.example/",
                "http://[::1",
                "http://a.example:99999/",
                'https://a.example/"onclick="x',
            )
        ),
        (Url(), 7, "must be text, not 7."),
        (Password(), 7, "must be text of at most 255 characters"),
        (Password(), "x" * 256, "must be text of at most 255 characters"),
        (Password(), "a\x00b", "without control characters"),
        (IpAddress(), "fe80::1%\x00", "must not contain control characters"),
        (IpAddress(), "fe80::1%" + "x" * 100, "at most 100 are allowed"),
        (IpAddress(), "fe80::1%%", "must be an address such as 192.0.2.7"),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail


@pytest.mark.parametrize(
    ("type_", "raw", "message"),
    [
        (LINE, 7, "INVALID_VALUE"),
        (NAME, " \n ", "NO_TITLE"),
    ],
)
def test_a_value_is_refused_under_the_message_that_fits(type_: Type, raw: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert refused.value.message == message


@pytest.mark.parametrize("beside", ["b", "\u00e9", "\u4e2d"])
def test_no_control_characters_pass_but_those_that_end_lines_and_tabs(beside: str) -> None:
    refused = set()
    for number in range(0x100):
        text = f"a{chr(number)}{beside}"
        try:
            parsed = PAGE.parse(text)
        except Invalid:
            refused.add(number)
        else:
            assert parsed == text
    assert refused == {*range(0x20), *range(0x7F, 0xA0)} - set(b"\t\n\r")


CHARACTERS = st.text(st.sampled_from("<>/&;#x13 ab\"'=-!pscript\n\r\t\xa0"), max_size=60)
TAGS = st.sampled_from(["<p>", "<h1>", "<li>", "<dd>", "<a>", "</a>", "<button>", "<select>", "<form>", "<table>", "x"])


@given(html=CHARACTERS | st.lists(TAGS, max_size=8).map("".join))
@example(html="<p>x<button><p>y")
@example(html="<a><table><a>")
def test_sanitised_html_stays_as_it_is_when_it_is_sent_back(html: str) -> None:
    try:
        kept = Html().parse(html)
    except Invalid:
        return
    assert Html().parse(kept) == kept


def test_a_text_is_refused_before_it_takes_a_parser_all_memory() -> None:
    """Each of the 1,000 elements is opened again in each of the 10,000 paragraphs, as HTML has it."""
    left_open = "<p>" + "".join(f"<b title={at}>" for at in range(1_000))
    with pytest.raises(Invalid, match="elements are open at once"):
        Html().parse(left_open + "<p>x" * 10_000)


def test_what_is_kept_can_be_sent_back_though_it_has_more_tags_than_what_was_sent() -> None:
    """Sanitising closes what was left open: what would be refused when it is sent back is refused at once."""
    for rows in range(900, 1_600, 100):
        try:
            kept = Html().parse("<div>" * 20 + "<p><b>x</b>" * rows)
        except Invalid:
            continue
        assert Html().parse(kept) == kept
