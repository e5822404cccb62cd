"""Requests whose end can be read in two ways, byte by byte: a proxy in front may read the other one, and so carry in a request."""

import pytest

from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey, Run

FORUMS = "/forums/forums"
BODY = b'{"name":"Outer"}'
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)

AMBIGUOUS = {
    "length and chunks": (b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", CHUNKED),
    "chunks and length": (b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", CHUNKED),
    "two lengths": (b"Content-Length: 16\r\nContent-Length: 0\r\n", BODY),
    "the same length twice": (b"Content-Length: 16\r\nContent-Length: 16\r\n", BODY),
    "lengths in a list": (b"Content-Length: 16, 0\r\n", BODY),
    "a length with a sign": (b"Content-Length: +16\r\n", BODY),
    "a length in base 16": (b"Content-Length: 0x10\r\n", BODY),
    "a length below nothing": (b"Content-Length: -1\r\n", BODY),
    "a length with a space in it": (b"Content-Length: 1 6\r\n", BODY),
    "a length too large for a number": (b"Content-Length: 18446744073709551632\r\n", BODY),
    "chunks that are not the last coding": (b"Transfer-Encoding: chunked, identity\r\n", CHUNKED),
    "a coding that only looks like chunks": (b"Transfer-Encoding: xchunked\r\n", CHUNKED),
    "a space before the colon": (b"Transfer-Encoding : chunked\r\n", CHUNKED),
    "a folded line": (b"Transfer-Encoding:\r\n chunked\r\n", CHUNKED),
    "a bare line feed in a chunk": (b"Transfer-Encoding: chunked\r\n", CHUNKED.replace(b"\r\n", b"\n", 1)),
    "a chunk of a negative size": (b"Transfer-Encoding: chunked\r\n", b"-1\r\n" + CHUNKED),
    "a chunk longer than it says": (b"Transfer-Encoding: chunked\r\n", b"2\r\n%b\r\n0\r\n\r\n" % BODY),
    "a chunk with a size too large for a number": (b"Transfer-Encoding: chunked\r\n", b"1" + b"0" * 16 + b"\r\n" + CHUNKED),
    "a name with a zero byte": (b"Content-Length: 16\r\nX\0: y\r\n", BODY),
    "a return without its line feed": (b"X: y\rContent-Length: 0\r\nContent-Length: 16\r\n", BODY),
}


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_can_be_read_in_two_ways_is_refused_with_all_behind_it(serve: MakeService, key: MakeKey, run: Run) -> None:
    service, text = serve(), key(["forums.create"])
    outer = b"POST /api%b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n" % (FORUMS.encode(), text.encode())
    outer += b"Content-Type: application/json\r\n"
    carried = outer + b'Content-Length: 18\r\n\r\n{"name":"Carried"}'
    right = service.raw(outer + b"Content-Length: 16\r\nConnection: close\r\n\r\n" + BODY)
    assert right.startswith(b"HTTP/1.1 201 ")
    for name, (head, body) in AMBIGUOUS.items():
        answer = service.raw(outer + head + b"\r\n" + body + carried)
        assert answer.startswith(b"HTTP/1.1 4"), (name, answer)
        assert answer.count(b"HTTP/1.1 ") == 1, (name, answer)
    assert [one["name"] for one in run("forums.list")["results"]] == ["Outer"]
