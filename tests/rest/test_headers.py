"""The headers of conditional requests, as RFC 9110 defines them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import Refused
from trellis.http.api.headers import expected_versions, is_not_modified

TAG = b"5d41402abc4b2a76b9719d91"

_characters = st.sampled_from([bytes([c]) for c in range(0x21, 0x100) if c not in (0x22, 0x7F)])
_values = st.lists(_characters, max_size=8).map(b"".join)
_blanks = st.text(" \t", max_size=3).map(str.encode)
_tags = st.tuples(st.sampled_from([b"", b"W/"]), _values)


@st.composite
def lists(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return a list of entity tags as it may be sent, empty elements included, and the tags in it."""
    tags = draw(st.lists(_tags, min_size=1, max_size=5))
    elements = [weak + b'"' + value + b'"' for weak, value in tags]
    for _ in range(draw(st.integers(0, 2))):
        elements.insert(draw(st.integers(0, len(elements))), b"")
    return b",".join(draw(_blanks) + element + draw(_blanks) for element in elements), tags


@given(lists())
def test_every_list_of_tags_is_read(sent: tuple[bytes, list[tuple[bytes, bytes]]]) -> None:
    text, tags = sent
    strong = tuple(value.decode("latin-1") for weak, value in tags if not weak and value != b"*")
    assert expected_versions(text) == (strong or ("",))
    for _, value in tags:
        assert is_not_modified(text, value)
    assert is_not_modified(text, TAG) == any(value == TAG for _, value in tags)


_PARTS = (b'"', b"*", b"W/", b",", b" ", b"\t", b"a", b"\x7f", b"\xe9", b"w/", TAG)


@given(st.lists(st.sampled_from(_PARTS), max_size=12).map(b"".join))
def test_what_is_no_list_matches_nothing_and_is_refused(text: bytes) -> None:
    element = rb'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
    is_list = re.fullmatch(rb"[ \t,]*%b[ \t]*(?:,[ \t,]*(?:%b[ \t]*)?)*" % (element, element), text) is not None
    is_any = text.strip(b" \t") == b"*"
    if is_list or is_any:
        assert ("*" in expected_versions(text)) == is_any
        assert is_not_modified(text, TAG) == (is_any or b'"' + TAG + b'"' in text)
    else:
        with pytest.raises(Refused, match="INVALID_HEADER"):
            expected_versions(text)
        assert not is_not_modified(text, TAG)


def test_a_list_as_long_as_a_head_may_be_is_read_in_one_pass() -> None:
    for text in (b" " * 60_000 + b"x", b'"a", ' * 12_000 + b"x", b"," * 60_000, b'"' + b"a" * 60_000, b"W/" * 30_000):
        assert not is_not_modified(text, TAG)
