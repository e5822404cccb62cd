"""The service's own log: what it tells, in which form, what never stands in it, and that nobody has to read it."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.api_fixtures import MakeApiClient, MakeService, make_api, serve
from tests.fixture_types import MakeKey
from tests.no_threads import without_new_threads
from tests.service_process import Service, begin_post
from tests.wait import wait_until
from trellis import __version__
from trellis.logs import JsonFormatter, TextFormatter, configure_logs, redact_links
from trellis.settings import Settings, SettingsError

__all__ = ["make_api", "serve"]

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _record(message: str, *values: object, **facts: object) -> logging.LogRecord:
    record = logging.LogRecord("trellis.somewhere", logging.WARNING, "", 0, message, values, None)
    vars(record).update(facts)
    return record


def test_who_sends_a_line_feed_cannot_make_a_line_of_their_own() -> None:
    line = TextFormatter().format(_record("Refused %s.", "a\n2026-01-01 ERROR forged\x1b[2J\u202e"))
    assert "\n" not in line
    assert line.endswith("WARNING trellis.somewhere: Refused a\\n2026-01-01 ERROR forged\\u001b[2J\\u202e.")
    assert json.loads(JsonFormatter().format(_record("%s", "a\nb")))["message"] == "a\nb"


def test_the_text_of_an_error_cannot_look_like_a_line_either() -> None:
    """It may quote what a caller has sent, as PostgreSQL does in the details of an error."""
    record = _record("Request %s failed.", "r1")
    error = ValueError("a\n2026-01-01 ERROR forged\x1b[2J")
    record.exc_info = (type(error), error, None)
    first, *others = TextFormatter().format(record).split("\n")
    assert first.endswith("Request r1 failed.")
    assert others == ["  ValueError: a", "  2026-01-01 ERROR forged\\u001b[2J"]


def test_a_record_for_machines_has_its_request_and_its_error() -> None:
    with pytest.raises(ValueError, match="Expecting value") as raised:
        json.loads("it broke")
    record = _record("Request %s failed.", "r1", request="r1")
    record.exc_info = (raised.type, raised.value, raised.tb)
    told = json.loads(JsonFormatter().format(record))
    assert (told["level"], told["logger"], told["message"], told["request"]) == (
        *("warning", "trellis.somewhere"),
        *("Request r1 failed.", "r1"),
    )
    assert "JSONDecodeError: Expecting value" in told["error"].splitlines()[-1]
    assert TextFormatter().format(record).splitlines()[-1].strip() == told["error"].splitlines()[-1]


def test_a_request_is_told_to_people_with_its_key_whatever_its_number() -> None:
    facts = {"method": "GET", "path": "/api/forums/forums/1", "status": 200, "ms": 1.5, "key": 1, "request": "r1"}
    record = _record("%(method)s %(path)s %(status)d %(ms)s ms", facts, **facts)
    assert TextFormatter().format(record).endswith(": GET /api/forums/forums/1 200 1.5 ms request=r1 key=1")


@pytest.fixture
def log_to() -> Iterator[Callable[[int], logging.Logger]]:
    """Write the log to a descriptor, until the test ends."""
    own = logging.getLogger("trellis")
    before = own.level, own.handlers[:], logging.getLogger().handlers[:], logging.getLogger().level

    def write(descriptor: int) -> logging.Logger:
        configure_logs(Settings(), descriptor)
        return logging.getLogger("trellis.somewhere")

    yield write
    for handler in set(logging.getLogger().handlers) - set(before[2]):
        handler.close()
    own.setLevel(before[0])
    own.handlers[:], logging.getLogger().handlers[:] = before[1], before[2]
    logging.getLogger().setLevel(before[3])


def test_a_log_that_nobody_reads_holds_up_nobody_and_says_later_what_was_left_out(
    log_to: Callable[[int], logging.Logger],
) -> None:
    reads, writes = os.pipe()
    log = log_to(writes)
    for number in range(12_000):  # a pipe takes about a thousand of these
        log.warning("Line %d. %s", number, "x" * 50)
    with os.fdopen(reads, "rb") as reader:
        found = b""
        while b"were left out" not in found:
            log.warning("Later.")
            found += os.read(reader.fileno(), 65_536)
        assert b"Line 0. " in found
        os.close(writes)


def test_lines_for_which_no_thread_can_be_started_wait_and_fail_nobody(log_to: Callable[[int], logging.Logger]) -> None:
    reads, writes = os.pipe()
    log = log_to(writes)
    with without_new_threads():
        log.warning("First.")
    log.warning("Second.")
    with os.fdopen(reads, "rb") as reader:
        assert b"First." in reader.readline()
        assert b"Second." in reader.readline()
        os.close(writes)


def test_no_line_is_lost_if_writing_to_a_full_pipe_does_not_block(log_to: Callable[[int], logging.Logger]) -> None:
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    os.set_blocking(writes, False)
    log, found = log_to(writes), bytearray()
    for number in range(5_000):
        log.warning("Line %d. %s", number, "x" * 50)

    def read() -> bytearray:
        with suppress(BlockingIOError):
            found.extend(os.read(reads, 65_536))
        return found

    wait_until(lambda: b"Line 4999. " in read())
    assert [line.split()[4] for line in found.decode().splitlines()] == [f"{number}." for number in range(5_000)]
    os.close(reads)
    os.close(writes)


@pytest.mark.parametrize("text", ["xml", "verbose"])
def test_a_setting_of_the_log_that_cannot_be_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(SettingsError, match="must be one of text, json"):
        Settings.load({"TRELLIS_LOG_FORMAT": text}, None)
    with pytest.raises(SettingsError, match="must be one of debug, info, warning, error"):
        Settings.load({"TRELLIS_LOG_LEVEL": text}, None)


def _lines(service: Service) -> list[dict[str, Any]]:
    return [json.loads(line) for line in service.output.splitlines() if line.startswith("{")]


def test_the_log_of_a_run_tells_its_start_its_requests_and_its_end_and_no_secret(serve: MakeService, key: MakeKey) -> None:
    text = key("forums.list", name="Reader")
    token = "metrics-token-of-this-test"
    service = serve(log_format="json", access_log=True, metrics_token=token, key_in_url=True)
    traced = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-Id": "mine"}
    assert service.call("GET", "/forums/forums", text, traced).status_code == 200
    assert service.call("GET", f"/forums/forums?key={text}").status_code == 200
    assert service.call("GET", f"/forums/{quote(text, safe='')}", text).status_code == 404
    assert service.call("GET", f"/forums/%74{text[1:]}", text).status_code == 404
    assert service.client.get(f"{service.address}/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert service.client.get(f"{service.address}/admin/sign-in?secret={text}").status_code == 200
    link = "one-time-secret-of-a-link"
    for kind in ("invitation", "first-run"):
        assert service.client.get(f"{service.address}/admin/{kind}/{link}").status_code == 404
    for mistyped in ("invitation/%20", "invitation//", "invitation%2F", "invitation/%3C", "Invitation/", "invitations/"):
        assert service.client.get(f"{service.address}/admin/{mistyped}{link}").status_code in {303, 404}
    service.terminate()

    lines = _lines(service)
    began, settings = lines[0]["message"], lines[1]["message"]
    engine = "SQLite" if service.settings.database_url.startswith("sqlite") else "PostgreSQL"
    assert began.startswith(f"Trellis {__version__} listens on {service.address}, in 1 process. The database: {engine} ")
    assert "TRELLIS_DATABASE_URL=(set)" in settings
    assert "TRELLIS_METRICS_TOKEN=(set)" in settings
    assert "TRELLIS_LOG_FORMAT=json" in settings
    assert lines[-1]["message"] == "Trellis has stopped."
    requests = [line for line in lines if line["logger"] == "trellis.access" and not line["path"].startswith("/healthz")]
    assert [(line["status"], line.get("operation")) for line in requests[:2]] == [
        (200, "forums.list"),
        (200, "forums.list"),
    ]
    assert (requests[0]["request"], requests[0]["trace"], requests[0]["key"]) == ("mine", TRACE, 1)
    assert [line["path"].partition("/")[2].partition("/")[0] for line in requests] == [*["api"] * 4, "metrics", *["admin"] * 9]
    assert text not in service.output
    assert text.rpartition("_")[2] not in service.output, "no part of it that is secret"
    assert token not in service.output
    assert link not in service.output


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_log_of_several_processes_is_one_of_lines_that_are_whole(settings: Settings, tmp_path: Path, key: MakeKey) -> None:
    text = key("forums.list")
    with Service(replace(settings, log_format="json", access_log=True), tmp_path, options=("--workers", "2")) as service:
        for _ in range(50):
            service.call("GET", "/forums/forums", text)
        wait_until(lambda: sum(line["message"].endswith(" serves.") for line in _lines(service)) == 2)
        wait_until(lambda: sum(line.get("operation") == "forums.list" for line in _lines(service)) == 50)
    told = [line["message"] for line in _lines(service)]
    assert sum("started." in message for message in told) == sum(" serves." in message for message in told) == 2
    assert sum(message.startswith("Worker ") and message.endswith(" ended.") for message in told) == 2
    assert told[-1] == "Trellis has stopped."


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_the_server_refuses_by_itself_is_told_too(serve: MakeService, key: MakeKey) -> None:
    text = key("*")
    service = serve(log_format="json", access_log=True, head_timeout=1, body_timeout=1)
    for refused in (
        b"no HTTP at all\r\n\r\n",
        b"GET /api/late HTTP/1.1\r\nHost: here\r\nX-Half: ",
        f"GET /api/{text}?key={text} HTTP/1.1\r\nHost: here\r\nX-Large: {'x' * 70_000}\r\n\r\n".encode(),
    ):
        assert service.raw(refused).startswith(b"HTTP/1.1 4")
    with begin_post(service.port, "/api/forums/forums", text, b'{"name": "Garden"}', 5) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")
    wait_until(lambda: any(line.get("operation") == "forums.create" for line in _lines(service)))
    told = [(line["status"], line.get("path"), line.get("request")) for line in _lines(service) if line.get("status", 0) >= 400]
    assert [one[0] for one in told] == [400, 408, 431, 408]
    assert told[1][1] == "/api/late"
    assert told[3][1:] == ("/api/forums/forums", "in-flight"), (
        "in the line of the request, which was not answered by the application"
    )
    assert text.rpartition("_")[2] not in service.output


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_an_error_is_told_with_the_trace_of_its_request(
    make_api: MakeApiClient, key: MakeKey, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    api = make_api()

    def fail(_call: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(api.application.gate, "run", fail)
    headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "X-Request-Id": "mine"}
    assert api.get("/forums/forums", headers=headers).status_code == 500
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    told = json.loads(JsonFormatter().format(record))
    assert (told["request"], told["trace"]) == ("mine", TRACE)


@pytest.mark.parametrize("end", ["", "/sign-on"])
@pytest.mark.parametrize("begin", ["/admin/invitation", "/invitation", "/admin//First-Run", "/admin/x%2Finvitation"])
def test_nothing_of_the_secret_of_a_link_is_left(begin: str, end: str) -> None:
    for between in ("/", "//", "%20", ""):
        assert redact_links(f"{begin}{between}one-time-secret-of-a-link{end}") == f"{begin}/[hidden]{end}"


@pytest.mark.parametrize("path", ["/admin/invitation/short", "/api/forums/by-external-id/our-invitation-to-everybody"])
def test_what_is_no_secret_of_a_link_is_told(path: str) -> None:
    assert redact_links(path) == path


@pytest.mark.parametrize("part", ["/admin", "/", "xinvitation/", "/ADMINinvitatio"])
def test_a_path_of_the_worst_is_read_once(part: str) -> None:
    path = part * 100_000  # one that is read again for each part takes longer than any test may
    assert redact_links(path) == path
