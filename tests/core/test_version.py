"""The bytes of a record and the version that they make."""

from itertools import product

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.core.version import compute_version, encode_json, encode_large


def test_a_record_is_written_in_the_order_of_its_members() -> None:
    assert encode_json({"id": 1, "name": "Müller", "a": None}) == '{"id":1,"name":"Müller","a":null}'.encode()


def test_a_version_is_24_hexadecimal_digits_and_does_not_change_between_releases() -> None:
    assert compute_version(b'{"id":1}') == "b308b2843bd91460b8e49503"


@given(st.binary(), st.binary())
def test_equal_bytes_make_equal_versions_and_others_do_not(one: bytes, other: bytes) -> None:
    assert (compute_version(one) == compute_version(other)) == (one == other)


@given(st.dictionaries(st.text(), st.text() | st.integers(-(2**63), 2**63 - 1) | st.none() | st.booleans()))
def test_what_is_written_reads_the_same(record: dict[str, object]) -> None:
    assert orjson.loads(encode_json(record)) == record


@pytest.mark.parametrize(("length", "name"), [*product((0, 1, 25, 26, 525, 526, 1001), ("Müller",)), (60, "x" * 300_000)])
def test_what_is_large_is_written_the_same_in_parts(length: int, name: str) -> None:
    many: list[object] = [{"id": number, "name": name} for number in range(length)]
    for value in ({"results": many, "id": 7, "last": [many]}, ["site", many, many[:3]], ("site", many), many, "text", None):
        assert encode_large(value) == encode_json(value)
