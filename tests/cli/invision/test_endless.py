"""What `trellis import invision` does about a community that would keep it busy for ever, or fill this machine."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from itertools import chain, count, pairwise, repeat
from pathlib import Path

import pytest
from typer import testing

from tests.cli.conftest import Trellis
from tests.cli.invision.conftest import Import
from tests.old_community import Interruption, OldCommunity, forum
from trellis.invision.live import client, connection

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # none of this is about the database


def refused(result: testing.Result) -> str:
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


def test_it_gives_up_where_it_is_put_off_again_and_again(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    old.interruptions = [Interruption(429, {"retry-after": "1"})] * 50
    assert "Nothing was written; begin again later." in refused(bring())
    assert (len(old.requests), waits) == (11, [1] * 10)


@pytest.mark.parametrize("cuts", [(), (5,), (5, 12)], ids=["one", "two", "three"])
@pytest.mark.parametrize("rest", [b"", b"\0" * 512])
def test_a_compressed_answer_is_read_in_all_its_members(
    bring: Import, old: OldCommunity, cuts: tuple[int, ...], rest: bytes
) -> None:
    plain = json.dumps({"results": [forum(1, "News")]}).encode()
    answer = b"".join(gzip.compress(plain[start:end]) for start, end in pairwise((0, *cuts, len(plain)))) + rest
    old.instead = {"/api/forums/forums": Interruption(200, {"content-encoding": "gzip"}, answer)}
    assert "1 forum," in bring().stdout


def test_an_answer_whose_compression_is_broken_is_asked_for_again(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    old.interruptions = [Interruption(200, {"content-encoding": "gzip"}, b"{}")]
    assert bring().exit_code == 0
    assert waits == [2]


@pytest.mark.parametrize("missing", [1, 8, 30])
def test_a_compressed_answer_that_was_cut_off_is_asked_for_again(
    bring: Import, old: OldCommunity, waits: list[float], missing: int
) -> None:
    answer = gzip.compress(json.dumps({"results": [forum(1, "News")]}).encode())
    old.interruptions = [Interruption(200, {"content-encoding": "gzip"}, answer[:-missing])]
    assert bring().exit_code == 0
    assert waits == [2]


@pytest.mark.parametrize("beginning", [b"\x1f\x8b\x08\x08\0\0\0\0\0\x03", gzip.compress(b"{}")], ids=["name", "end"])
def test_a_compressed_answer_that_holds_nothing_and_has_no_end_is_not_read_on(
    bring: Import, old: OldCommunity, beginning: bytes
) -> None:
    def send_without_end(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-encoding", "gzip")
        handler.end_headers()
        handler.wfile.write(beginning)
        with suppress(OSError):
            while True:
                handler.wfile.write(b"a" * 2**20)

    old.interruptions = [send_without_end]
    assert "An answer is larger than 32 MiB." in refused(bring())


def test_a_small_answer_that_is_large_without_its_compression_is_not_kept(bring: Import, old: OldCommunity) -> None:
    old.interruptions = [Interruption(200, {"content-encoding": "gzip"}, gzip.compress(b" " * 2**26))]
    assert "An answer is larger than 32 MiB." in refused(bring())


MANY_VALUES = b'{"results": [' + b"[]," * 2_000_000 + b"[]]}"
REFUSAL = "The answers have more than 4,000,000 values in all. Read one section after the other, with --section."


def test_a_small_answer_that_would_take_much_memory_is_not_parsed(bring: Import, old: OldCommunity) -> None:
    old.interruptions = [Interruption(200, {"content-encoding": "gzip"}, gzip.compress(MANY_VALUES))]
    assert REFUSAL in refused(bring())


def test_a_saved_answer_that_would_take_much_memory_is_not_parsed(trellis: Trellis) -> None:
    file = Path("saved/core/groups/page-1.json")
    file.parent.mkdir(parents=True)
    file.write_bytes(MANY_VALUES)
    assert REFUSAL in refused(trellis("import", "invision", "--from", "saved"))
    Path("saved.json").write_bytes(MANY_VALUES)
    assert REFUSAL in refused(trellis("import", "invision", "--from", "saved.json"))


def test_a_list_whose_pages_never_end_is_not_kept(bring: Import, old: OldCommunity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_IN_ALL", 2**20)
    ids = count(1)

    def answer_one_more(handler: BaseHTTPRequestHandler) -> None:
        old.interruptions.append(answer_one_more)
        body = json.dumps({"results": [{"id": next(ids), "name": "x" * 2**17}]}).encode()
        handler.send_response(200)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    old.interruptions = [answer_one_more]
    assert "The answers have more than 1 MiB in all." in refused(bring())
    assert len(old.requests) == 8


OK = b"HTTP/1.1 200 OK\r\n"
IN_PARTS = OK + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "rest"),
    [
        (OK + b"x: ", b"x"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (IN_PARTS + b"2;x=", b"x"),
        (IN_PARTS, b"1\r\n \r\n"),
        (IN_PARTS + b"2\r\n{}\r\n0\r\nx: ", b"x"),
        (OK + b"content-length: 9999\r\n\r\n", b" "),
    ],
    ids=["headers", "interim answers", "size of a part", "parts", "trailer", "body"],
)
def test_an_answer_that_comes_too_slowly_is_given_up(
    bring: Import, old: OldCommunity, monkeypatch: pytest.MonkeyPatch, beginning: bytes, rest: bytes
) -> None:
    over = threading.Event()

    def send_slowly(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        pieces: Iterator[bytes] = chain([beginning], repeat(rest, 3000))
        with suppress(OSError):
            for piece in pieces:
                handler.wfile.write(piece)
                if over.wait(0.01):
                    return

    monkeypatch.setattr(connection, "_WHOLE_ANSWER", 1)
    monkeypatch.setattr(client, "_RETRIES", ())
    old.interruptions = [send_slowly]
    told = refused(bring("--timeout", "1"))
    over.set()
    assert "could not be reached: an answer was not complete within 1 second." in told


def test_a_server_may_take_as_long_as_it_is_given(bring: Import, old: OldCommunity, monkeypatch: pytest.MonkeyPatch) -> None:
    def be_late() -> None:
        threading.Event().wait(0.5)

    monkeypatch.setattr(connection, "_WHOLE_ANSWER", 0.1)
    old.before = {"/api/forums/forums": be_late}
    assert bring("--timeout", "60").exit_code == 0


@pytest.mark.parametrize("value", ["x" * 4000, "\xe9"])
def test_cookies_are_not_kept(bring: Import, old: OldCommunity, value: str) -> None:
    sent: list[str | None] = []

    def set_cookie(handler: BaseHTTPRequestHandler) -> None:
        sent.append(handler.headers["cookie"])
        old.interruptions.append(set_cookie)
        status, answer = old.answer(handler.path, handler.headers["authorization"])
        body = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("content-length", str(len(body)))
        handler.send_header("set-cookie", f"c{len(sent)}={value}")
        handler.end_headers()
        handler.wfile.write(body)

    old.interruptions = [set_cookie]
    assert bring().exit_code == 0
    assert {*sent} == {None}


def test_an_answer_that_cannot_be_saved_is_told(bring: Import, old: OldCommunity) -> None:
    name: object = "News"
    for _ in range(300):
        name = [name]
    old.lists["forums/forums"] = [forum(1, "News") | {"name": name}]
    assert "forums/forums/page-1: This is nested too deeply to be saved." in refused(bring("--save", "saved"))
    assert not Path("saved").exists()
    assert bring().exit_code == 0
