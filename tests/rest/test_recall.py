"""What is recognised of a request's bytes, and for how long it is remembered."""

import pytest

from trellis.core.actor import Actor
from trellis.core.keys.keyring import Bearer
from trellis.rest.recall import Caller, Known, Recall
from trellis.store.keys import Key

HOST = b"Host: forum.example\r\nAuthorization: Bearer x\r\n\r\n"
HERE = b"192.0.2.7"
_UNUSED: dict[str, None] = {"revoked_at": None, "revoked_because": None, "last_used_at": None}


def line(target: bytes, block: bytes = HOST) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + block


def caller() -> Caller:
    key = Key(1, "aaaaaaaa", "k", "", None, None, [], None, [], None, log_requests=True, created_at="", updated_at="", **_UNUSED)
    return Caller({}, "", "192.0.2.7", Bearer(Actor("key", 1, "k"), "aaaaaaaa", None, log_requests=True, key=key, until=None), 0)


def known(size: int = 10) -> Known:
    return Known(b"", b"x" * size, 200, "/api", None)


@pytest.mark.parametrize(
    ("target", "asked_for"),
    [
        (b"/api/forums/forums", b"/forums/forums"),
        (b"/api/forums/forums/", b"/forums/forums/"),
        (b"/api/forums/forums?page=2&perPage=5", b"/forums/forums?page=2&perPage=5"),
        (b"/api/forums/forums?search=a%20b&x[]=1", b"/forums/forums?search=a%20b&x[]=1"),
        (b"/api/forums/forums?", b"/forums/forums?"),
    ],
)
def test_a_plain_request_for_reading_is_read(target: bytes, asked_for: bytes) -> None:
    asked = Recall(1000).read(line(target), HERE)
    assert asked is not None
    assert asked.target == asked_for


@pytest.mark.parametrize(
    "data",
    [
        line(b"/api/forums/forums?key=trl_x"),
        line(b"/api/forums/forums?page=1&key=trl_x"),
        line(b"/api/forums/forums#top"),
        line(b"/api/forums/f%C3%B6rums"),
        line(b"/api//forums\x80"),
        line(b"/admin"),
        line(b"http://forum.example/api/forums/forums"),
        line(b"/api/forums/forums").replace(b"GET", b"POST"),
        line(b"/api/forums/forums").replace(b"HTTP/1.1", b"HTTP/1.0"),
        line(b"/api/forums/forums") * 2,
        line(b"/api/forums/forums") + b"more",
        line(b"/api/forums/forums")[:-2],
        line(b"/api/forums/forums", b"X: " + b"y" * 5000 + b"\r\n\r\n"),
        b"",
    ],
)
def test_anything_else_goes_the_long_way(data: bytes) -> None:
    assert Recall(1000).read(data, HERE) is None


def test_whoever_sends_other_headers_or_sits_elsewhere_is_somebody_else() -> None:
    recall = Recall(1000)
    marks = [
        recall.read(line(b"/api/a"), HERE),
        recall.read(line(b"/api/b"), HERE),
        recall.read(line(b"/api/a"), b"192.0.2.8"),
        recall.read(line(b"/api/a", HOST.replace(b"x", b"y")), HERE),
        Recall(1000).read(line(b"/api/a"), HERE),
    ]
    first, *others = (asked.mark for asked in marks if asked is not None)
    assert [mark == first for mark in others] == [True, False, False, False]


def test_no_secret_stands_in_what_is_remembered() -> None:
    asked = Recall(1000).read(line(b"/api/a", b"Authorization: Bearer trl_aaaaaaaa_secret\r\n\r\n"), HERE)
    assert b"secret" not in repr(asked).encode()


def test_a_caller_is_known_under_the_same_version_only() -> None:
    recall = Recall(100_000)
    somebody = caller()
    recall.meet(1, b"mark", somebody)
    assert recall.find(1, b"mark") is somebody
    assert [recall.find(version, b"mark") for version in (2, None)] == [None, None]
    recall.meet(2, b"other", caller())
    assert recall.find(2, b"mark") is None, "what was known under an older version is forgotten"


def test_answers_are_bounded_by_their_bytes() -> None:
    recall = Recall(20_000)
    asked = [recall.read(line(b"/api/%d" % number), HERE) for number in range(20)]
    assert all(asked)
    somebody = caller()
    recall.meet(1, b"mark", somebody)
    recall.keep(somebody, asked[0], known(19_000))  # type: ignore[arg-type]
    assert not somebody.answers, "one answer takes an eighth of the room at most"
    for one in asked[:5]:
        recall.keep(somebody, one, known(1_500))  # type: ignore[arg-type]
    assert len(somebody.answers) == 5
    for one in asked[5:]:
        recall.keep(somebody, one, known(1_500))  # type: ignore[arg-type]
    assert recall.find(1, b"mark") is None, "all are forgotten once there is no room"


def test_callers_are_bounded_by_their_number() -> None:
    recall = Recall(0)
    for number in range(2500):
        recall.meet(1, b"%d" % number, caller())
    assert recall.find(1, b"2499") is not None
    assert sum(recall.find(1, b"%d" % number) is not None for number in range(2500)) <= 1000
