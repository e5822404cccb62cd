"""How `trellis import invision` reads a live community: all of it, politely, and with a sentence where it cannot."""

import base64
import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from typer import testing

from tests.cli.conftest import Trellis
from tests.cli.invision.conftest import Document, Import
from tests.held_port import held_port
from tests.old_community import KEY, Interruption, OldCommunity, forum, group
from trellis.cli.app import app
from trellis.invision.live import client

Read = Callable[..., Document]
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # none of this is about the database


@pytest.fixture
def nothing_written(bring: Import) -> Iterator[None]:
    """See that no file is left where the command line runs."""
    yield
    assert [*Path().iterdir()] == []


def complete(result: testing.Result) -> None:
    assert result.exit_code == 0, result.output
    assert "5 groups, 7 forums, 2 blogs, 2 calendars, 2 download categories; 2 left out." in result.stdout


def refused(result: testing.Result) -> str:
    assert result.exit_code == 1, result.output
    return " ".join(result.stderr.split())


# --- all of it ----------------------------------------------------------------------------------------------------


def test_all_pages_are_read(bring: Import, old: OldCommunity) -> None:
    old.most_per_page = 2
    complete(bring())
    forums = [parse_qs(urlsplit(asked).query)["page"] for asked in old.requests if asked.startswith("/api/forums/forums")]
    assert forums == [["1"], ["2"], ["3"], ["4"], ["5"]]


def test_a_release_that_sends_all_at_once_is_read_once(bring: Import, old: OldCommunity) -> None:
    old.all_at_once = True
    complete(bring("--per-page", "2"))
    assert sum(asked.startswith("/api/forums/forums") for asked in old.requests) == 1


@pytest.mark.parametrize("told", [{}, {"totalPages": 99}, {"totalPages": "99", "totalResults": None}])
def test_it_ends_with_an_empty_page_or_one_without_anything_new(bring: Import, old: OldCommunity, told: dict[str, object]) -> None:
    old.told = told
    complete(bring("--per-page", "4"))
    old.requests.clear()
    old.all_at_once = True
    complete(bring("--per-page", "4"))
    assert len(old.requests) <= 11


@pytest.mark.parametrize(
    "told",
    [
        {"totalResults": 2, "totalPages": 99},
        {"totalResults": 1},
        {"totalPages": 1},
        {"totalPages": 0, "totalResults": -5},
        {"totalResults": 10**40},
    ],
)
def test_a_list_is_read_to_its_end_whatever_numbers_it_reports(bring: Import, old: OldCommunity, told: dict[str, object]) -> None:
    old.told = told
    complete(bring("--per-page", "4"))


def test_singular_paths_are_read(bring: Import, old: OldCommunity) -> None:
    old.singular = True
    complete(bring())


def test_paths_through_index_php_are_read(bring: Import, old: OldCommunity) -> None:
    old.rewrites = False
    complete(bring("--per-page", "2"))


def test_an_address_with_the_path_of_the_api_is_the_same(
    trellis: Trellis, bring: Import, old: OldCommunity, key_file: Path
) -> None:
    for path in ("api", "api/", "api/index.php", "index.php", "api/core/hello"):
        complete(trellis("import", "invision", old.url + path, "--key-file", key_file, "--rate", "1000"))


def test_caches_are_passed_by(bring: Import, old: OldCommunity, read: Read) -> None:
    old.caches = True
    complete(bring())
    old.lists["forums/forums"].append(forum(21, "Recipes"))
    assert bring().exit_code == 0
    assert "Recipes" in [one["name"] for one in read()["forums"]]


def test_a_record_that_comes_to_another_page_meanwhile_is_not_lost(bring: Import, old: OldCommunity, read: Read) -> None:
    forums = old.lists["forums/forums"]
    first = forums.pop(0)

    def put_back() -> None:
        if first not in forums:
            forums.insert(0, first)

    old.before = {"/api/forums/forums?page=2": put_back}
    complete(bring("--per-page", "3"))
    assert "Staff" in [one["name"] for one in read()["forums"]]


def test_a_record_that_comes_to_a_page_that_was_read_already_is_not_lost(bring: Import, old: OldCommunity, read: Read) -> None:
    forums = old.lists["forums/forums"]
    gone = next(one for one in forums if one["name"] == "Betas")
    old.before = {"/api/forums/forums?page=2": lambda: forums.remove(gone) if gone in forums else None}
    brought = bring("--per-page", "3")
    assert brought.exit_code == 0, brought.output
    (projects,) = (one for one in read()["forums"] if one["name"] == "Projects")
    assert [one["externalId"] for one in projects["children"]] == ["invision:forum:3", "invision:forum:5"]
    assert "when it was read again" not in brought.stderr


def test_a_list_that_changes_each_time_it_is_read_is_told(bring: Import, old: OldCommunity) -> None:
    forums = old.lists["forums/forums"]
    old.before = {"/api/forums/forums?page=2": lambda: forums.remove(forums[0])}
    sentence = "forums/forums: the community reported different totals on different pages, even when it was read again."
    assert sentence in " ".join(bring("--per-page", "3").stderr.split())


def test_a_release_that_has_no_page_behind_the_last_is_read(bring: Import, old: OldCommunity) -> None:
    old.told = {}
    old.instead = {"/api/forums/forums?page=4": Interruption(404, {}, b'{"errorCode": "1F294/1", "errorMessage": "NO_PAGE"}')}
    complete(bring("--per-page", "3"))


def test_a_list_that_stays_incomplete_is_told(bring: Import, old: OldCommunity) -> None:
    old.told = {"totalResults": 12, "totalPages": 1}
    brought = bring("--report", "report.txt")
    sentence = "core/groups: the community reports 7 more records than it sent, even when it was read again."
    assert sentence in brought.stderr
    assert sentence in Path("report.txt").read_text(encoding="utf-8")


def test_an_application_that_is_not_there_is_told(bring: Import, old: OldCommunity, read: Read) -> None:
    del old.lists["blog/blogs"], old.lists["calendar/calendars"]
    old.lists["downloads/categories"] = []
    old.release = None
    assert bring("--report", "report.txt").exit_code == 0
    assert [*read()] == ["format", "name", "groups", "forums"]
    told = Path("report.txt").read_text(encoding="utf-8")
    assert told.count("The old community has no such list") == 2
    assert told.count("There are none to write, so the document has no such section") == 1


# --- politely -----------------------------------------------------------------------------------------------------


def test_it_keeps_to_a_rate(
    trellis: Trellis, bring: Import, old: OldCommunity, key_file: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_clock", lambda: sum(waits))
    complete(trellis("import", "invision", old.url, "--key-file", key_file, "--rate", "0.01"))
    assert len(old.requests) == 6
    assert waits == [100] * 5


def test_it_waits_as_long_as_it_is_asked_to(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    old.interruptions = [Interruption(429, {"retry-after": "1"}), Interruption(503, {"retry-after": "40"})]
    brought = bring()
    complete(brought)
    assert waits == [1, 40]
    assert "Trying again in 1 second." in brought.stderr
    assert "Trying again in 40 seconds." in brought.stderr


def test_it_waits_ever_longer_where_it_is_not_told_how_long(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    old.interruptions = [Interruption(429)] * 3
    brought = bring()
    complete(brought)
    assert waits == [30, 60, 120]
    assert "The community limits requests (429)." in brought.stderr


def test_it_gives_up_where_it_would_wait_too_long(
    bring: Import, old: OldCommunity, waits: list[float], nothing_written: None
) -> None:
    old.interruptions = [Interruption(429)] * 5
    assert "Nothing was written; begin again later." in refused(bring())
    assert (len(old.requests), waits) == (5, [30, 60, 120, 240])
    old.interruptions = [Interruption(429, {"retry-after": "7200"})]
    assert "It asks to wait for 120 minutes." in refused(bring())


def test_it_tries_again_where_the_server_or_the_network_fails(bring: Import, old: OldCommunity, waits: list[float]) -> None:
    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    old.interruptions = [Interruption(500), hang_up, Interruption(502)]
    complete(bring())
    assert waits == [2, 5, 15]
    old.interruptions = [Interruption(500)] * 4
    assert "The community has failed (status 500). Nothing was written; begin again later." in refused(bring())


def test_it_stops_at_the_first_wrong_key(bring: Import, old: OldCommunity, key_file: Path, nothing_written: None) -> None:
    key_file.write_text("0" * 32, encoding="utf-8")
    told = refused(bring())
    assert "core/hello was refused with 401 ('INVALID_API_KEY', '3S290/7'). The community does not know the key." in told
    assert "0" * 32 not in told
    assert len(old.requests) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("NO_API_KEY", "removes the header Authorization"),
        ("IP_ADDRESS_NOT_ALLOWED", "Allow this address in the settings of the key"),
        ("IP_ADDRESS_BANNED", "Remove the ban in its administration panel"),
        ("SOMETHING", "Check the settings of the key in the old community."),
        (f"Key {KEY}", "Check the settings of the key in the old community."),
    ],
)
def test_it_says_why_the_key_was_refused(bring: Import, old: OldCommunity, message: str, told: str) -> None:
    old.interruptions = [Interruption(403, {}, json.dumps({"errorCode": "2S290/8", "errorMessage": message}).encode())]
    sentence = refused(bring())
    assert told in sentence
    assert KEY not in sentence


def test_it_tells_a_refusal_of_something_else_from_one_of_the_api(bring: Import, old: OldCommunity) -> None:
    old.interruptions = [Interruption(401, {"www-authenticate": 'Basic realm="staging"'}, b"<h1>Unauthorized</h1>")] * 2
    told = refused(bring())
    assert "It says 'Unauthorized'." in told
    assert "Something in front of it, such as a firewall or a password for the whole site" in told


@pytest.mark.parametrize("status", [200, 403, 405])
def test_paths_through_index_php_are_read_where_the_others_lead_to_a_page(bring: Import, old: OldCommunity, status: int) -> None:
    old.instead = {f"/api/{path}": Interruption(status, {}, b"<h1>Our shop</h1>") for path in ("core", *old.lists)}
    complete(bring())


@pytest.mark.parametrize(
    ("message", "told"), [("INVALID_API_KEY", "does not know the key"), ("NO_PERMISSION", "Allow it in the settings of the key")]
)
def test_a_refusal_that_comes_with_200_is_one(
    bring: Import, old: OldCommunity, message: str, told: str, nothing_written: None
) -> None:
    body = json.dumps({"errorCode": "3S290/7", "errorMessage": message}).encode()
    old.instead = {"/api/forums/forums": Interruption(200, {"content-type": "application/json"}, body)}
    sentence = refused(bring())
    assert f"forums/forums was refused with 200 ('{message}', '3S290/7')" in sentence
    assert told in sentence


@pytest.mark.parametrize("status", [200, 403])
def test_an_application_that_is_disabled_is_told(bring: Import, old: OldCommunity, status: int) -> None:
    body = b'{"errorCode": "1S290/2", "errorMessage": "APP_DISABLED"}'
    old.instead = {"/api/blog/": Interruption(status, {}, body)}
    bring("--report", "report.txt")
    assert "the application is not installed or not enabled" in " ".join(Path("report.txt").read_text(encoding="utf-8").split())


def test_it_names_what_the_key_may_not_read(bring: Import, old: OldCommunity, read: Read, nothing_written: None) -> None:
    old.granted = {"core/groups", "forums/forums", "calendar/calendars"}
    told = refused(bring())
    assert "blog/blogs was refused with 403" in told
    assert "leave this section out with --section" in told


def test_sections_that_the_key_may_not_read_can_be_left_out(bring: Import, old: OldCommunity) -> None:
    old.granted = {"core/groups", "forums/forums"}
    assert bring("--section", "forums", "--section", "groups").exit_code == 0


# --- with a sentence ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<!doctype html><h1>Back soon</h1>", "was answered with 'text/html' that is not JSON"),
        (b"", "that is not JSON. Check"),
        (b"<title>Sign In &amp; More</title><p>" + b"x" * 9000, "that is not JSON. It says 'Sign In & More xxx"),
        (b"<b>Warning</b>: rename() in <b>a.php</b>\n" + b'{"results": []}', "It says 'Warning : rename() in a.php"),
        (b'{"page": 1}', "this is not a list of records"),
        (b'{"results": "none"}', "this is not a list of records"),
        (b'{"results": [{"name": "News"}]}', "record 1 has no usable id, but null"),
        (b'{"results": [[]]}', "record 1 has no usable id"),
        (b"[" * 100_000, "that is not JSON"),
        (b"\xff\xfe", "that is not JSON"),
    ],
)
def test_answers_that_cannot_be_used(bring: Import, old: OldCommunity, body: bytes, told: str, nothing_written: None) -> None:
    old.instead = {"/api/forums/forums": Interruption(200, {"content-type": "text/html"}, body)}
    assert told in refused(bring())


def test_lists_in_other_forms_of_php_are_read(bring: Import, old: OldCommunity) -> None:
    answer = b"\xef\xbb\xbf\r\n\xef\xbb\xbf" + json.dumps({"results": {"0": forum(1, "News"), "2": forum(3, "Help")}}).encode()
    old.instead = {"/api/forums/forums": Interruption(200, {"content-type": "application/json"}, answer)}
    assert "2 forums" in bring().stdout


def test_where_there_is_no_api(bring: Import, old: OldCommunity, nothing_written: None) -> None:
    old.interruptions = [Interruption(404, {}, b"<h1>Nothing</h1>")] * 2
    assert "There is no REST API at http://127.0.0.1" in refused(bring())


def test_an_answer_that_is_too_large_is_not_read_whole(bring: Import, old: OldCommunity, nothing_written: None) -> None:
    sent = threading.Event()

    def send_without_end(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 2**20)
        except OSError:
            sent.set()

    old.interruptions = [send_without_end]
    assert "An answer is larger than 32 MiB. Ask for less at once with --per-page." in refused(bring())
    assert sent.wait(60)


def test_five_mebibytes_at_once_are_read(bring: Import, old: OldCommunity) -> None:
    old.all_at_once = True
    old.lists["forums/forums"] = [forum(number, f"Forum {number}", padding="x" * 60_000) for number in range(1, 101)]
    assert "100 forums" in bring().stdout


def test_a_server_that_says_nothing_is_given_up(bring: Import, old: OldCommunity, nothing_written: None) -> None:
    over = threading.Event()
    old.interruptions = [lambda _: over.wait(60)] * 4
    told = refused(bring("--timeout", "0.1"))
    over.set()
    assert "could not be reached: it sent nothing for 0.1 seconds. Nothing was written; begin again later." in told


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("https://elsewhere.example/api/core/hello", "redirects to 'https://elsewhere.example', and the key is not sent there"),
        ("//elsewhere.example/", "redirects to 'http://elsewhere.example', and the key is not sent there"),
        ("/api/core/hello", "redirects too many times"),
        ("http://[", "redirects to an invalid address"),
    ],
)
def test_redirects_are_followed_within_the_community_only(
    bring: Import, old: OldCommunity, location: str, told: str, nothing_written: None
) -> None:
    old.interruptions = [Interruption(301, {"location": location})] * 10
    assert told in refused(bring())


def test_a_redirect_within_the_community_is_followed(bring: Import, old: OldCommunity) -> None:
    old.interruptions = [Interruption(302, {"location": "/api/core/hello?again"})]
    complete(bring())


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://old.example/", "The key would be sent to old.example unencrypted"),
        ("ftp://old.example/", "is not an address"),
        ("old.example", "is not an address"),
        ("https://[", "is not an address"),
        ("https://old..example/", "is not an address"),
        (f"https://{'a' * 64}.example/", "is not an address"),
        ("https://xn--/", "is not an address"),
        ("https://old.example:99999/", "is not an address"),
        ("https://anna:secret@old.example/", "must have no user, password, query or fragment"),
        ("https://old.example/?key=secret", "must have no user, password, query or fragment"),
    ],
)
def test_addresses_that_are_not_asked(trellis: Trellis, key_file: Path, url: str, told: str, nothing_written: None) -> None:
    sentence = refused(trellis("import", "invision", url, "--key-file", key_file))
    assert told in sentence
    assert "secret" not in sentence.replace("'https://old.example/?key=secret'", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1080"),
        ("HTTPS_PROXY", "ftp://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://[::1"),
        ("SSL_CERT_FILE", "nothing.pem"),
    ],
)
@pytest.mark.usefixtures("nothing_written")
def test_a_proxy_or_certificates_that_cannot_be_used_are_named(
    trellis: Trellis, key_file: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setattr("trellis.invision.live.find_private_address", lambda _url: None)
    monkeypatch.setenv(name, value)
    told = refused(trellis("import", "invision", "https://old.example/", "--key-file", key_file))
    assert told.startswith("The proxy or the certificates that the environment names cannot be used: ")
    assert name in told


@pytest.mark.usefixtures("nothing_written", "waits")
def test_a_proxy_that_is_not_found_is_told(trellis: Trellis, key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", find_nothing)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy..example:3128")
    told = refused(trellis("import", "invision", "https://old.example/", "--key-file", key_file, "--rate", "1000"))
    assert "https://old.example could not be reached: [Errno -2] Name or service not known." in told


@pytest.mark.usefixtures("nothing_written", "waits")
def test_a_server_that_refuses_connections_is_told(trellis: Trellis, key_file: Path) -> None:
    with held_port() as port:
        url = f"http://127.0.0.1:{port}/"
        told = refused(trellis("import", "invision", url, "--key-file", key_file, "--rate", "1000"))
    assert re.search(r"could not be reached: \[Errno [0-9]+\] Connect", told)


def test_no_proxy_is_told_the_key_for_this_machine(bring: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    with OldCommunity() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        complete(bring())
        assert proxy.keys == []


def test_an_address_of_a_private_network_is_told(bring: Import) -> None:
    assert "is 127.0.0.1, an address of this machine or of a private network." in bring().stderr


# --- the key ------------------------------------------------------------------------------------------------------


TOKEN = base64.b64encode(f"{KEY}:".encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (f"x\0: {KEY} Basic {TOKEN}", "could not be reached: illegal header line: "),
        ("x\0: " + "x" * 50_000, "could not be reached: illegal header line: "),
        (f"content-type: {TOKEN}", "was answered with '(key)' that is not JSON"),
        (f"content-type: {KEY}", "was answered with '(key)' that is not JSON"),
    ],
)
def test_an_answer_that_repeats_the_key_is_told_without_it(bring: Import, old: OldCommunity, header: str, told: str) -> None:
    def repeat_key(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.wfile.write(f"HTTP/1.1 200 OK\r\n{header}\r\ncontent-length: 0\r\n\r\n".encode())

    old.interruptions = [repeat_key] * 4
    brought = bring()
    assert told in refused(brought)
    assert KEY not in brought.output
    assert TOKEN not in brought.output
    assert len(brought.output) < 3000


def test_a_key_that_is_repeated_as_php_writes_it_is_not_saved(bring: Import, old: OldCommunity, key_file: Path) -> None:
    key = 'a/key"with?signs??'
    key_file.write_text(key, encoding="utf-8")
    token = base64.b64encode(f"{key}:".encode()).decode()
    assert "/" in token
    answer = json.dumps({"communityName": key, "communityUrl": token}).replace("/", r"\/")
    groups = json.dumps({"results": [group(3, "Members")]}).encode()
    old.instead = {"/api/core/hello": Interruption(200, {}, answer.encode()), "/api/core/groups": Interruption(200, {}, groups)}
    assert bring("--section", "groups", "--save", "saved").exit_code == 0
    saved = json.loads(Path("saved/core/hello.json").read_text(encoding="utf-8"))
    assert saved == {"communityName": "(key)", "communityUrl": "(key)=="}


@pytest.mark.parametrize("text", ["", "\n", "two words are none", "colons:are:none", "short", "x" * 300, "schlüssel-von-früher"])
def test_a_file_without_a_key(bring: Import, old: OldCommunity, key_file: Path, text: str, nothing_written: None) -> None:
    key_file.write_text(text, encoding="utf-8")
    assert "is not a key" in refused(bring())
    assert old.requests == []


def test_a_file_that_is_no_text_or_not_there(bring: Import, key_file: Path) -> None:
    key_file.write_bytes(b"\xff\xfe\x00")
    assert "is not a key" in refused(bring())
    key_file.unlink()
    assert "could not be read: No such file" in refused(bring())


def test_the_key_can_come_from_standard_input(bring: Import, old: OldCommunity) -> None:
    words = ["import", "invision", old.url, "--key-file", "-", "--rate", "1000"]
    complete(testing.CliRunner().invoke(app, words, input=f"{KEY}\n", catch_exceptions=False))


def test_a_key_that_others_can_read_is_told(bring: Import, key_file: Path) -> None:
    key_file.chmod(0o644)
    brought = bring()
    complete(brought)
    assert f"chmod 600 {key_file}" in brought.stderr.replace("\n", "")
    key_file.write_bytes(b"\xff")
    told = bring()
    assert told.exit_code == 1
    assert f"chmod 600 {key_file}" in told.stderr.replace("\n", "")


@pytest.mark.parametrize("arguments", [(), ("https://old.example/",), ("--key-file", "old.key")])
def test_what_is_missing_is_told(trellis: Trellis, arguments: tuple[str, ...]) -> None:
    assert "Give the address of the old community and a file with its key" in refused(trellis("import", "invision", *arguments))
