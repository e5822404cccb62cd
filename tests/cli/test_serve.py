"""`trellis serve`: what it says before it serves, and how it ends."""

import re
import signal
import socket
import tempfile
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.api_fixtures import MakeService, serve
from tests.cli.conftest import Environment, Trellis, TrellisJson
from tests.community import GRANTABLE
from tests.fixture_types import MakeKey
from tests.service_process import begin_post, refuses_connections
from tests.sqlite_file import open_sqlite
from tests.wait import wait_until
from trellis.cli.terminal import Failure
from trellis.settings import PREFIX, Settings
from trellis.store.migrate import migrate

__all__ = ["serve"]  # a fixture

TRY = re.compile(
    r"  API=(http://127\.0\.0\.1:\d+/api)\n  API_KEY=(trl_\w+)\n"
    r'  curl -H "Authorization: Bearer \$API_KEY" "\$API/forums/forums\?perPage=3&pretty"\n'
)


def levels_of(output: str) -> set[str]:
    """Return the levels of the lines in a log. On a crowded machine, there are warnings of writes that take long."""
    return {line.split()[1] for line in output.splitlines() if line[:1].isdigit()}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Settings, int]]:
    """Stop short of serving: what would have been served, with how many workers."""
    runs: list[tuple[Settings, int]] = []
    monkeypatch.setenv("TRELLIS_COMMUNITY_URL", "")  # a demonstration sets it: this takes it back
    monkeypatch.setattr("trellis.cli.serve._run", lambda settings, _listener, workers: runs.append((settings, workers)))
    return runs


@pytest.mark.either_engine
def test_without_demo_it_tells_the_addresses_and_the_way_in(trellis: Trellis, served: list[tuple[Settings, int]]) -> None:
    result = trellis("serve", "--port", "0", "--workers", "3")

    assert result.exit_code == 0
    base, reference, panel, _, _, link = result.stdout.splitlines()
    assert re.fullmatch(r"Base URL:   http://127\.0\.0\.1:\d+/api", base)
    assert reference == base.replace("Base URL: ", "Reference:") + "/docs"
    assert panel == base.replace("Base URL: ", "Panel:    ").removesuffix("/api") + "/admin"
    assert re.fullmatch(r"  http://127\.0\.0\.1:\d+/admin/first-run/[\w-]{43}", link)
    assert [workers for _, workers in served] == [3]


def test_a_full_disk_of_the_output_keeps_nobody_from_being_served(
    trellis: Trellis, served: list[tuple[Settings, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_line: str = "") -> None:
        raise Failure("The output could not be written: No space left on device.")

    monkeypatch.setattr("trellis.cli.serve.show", fail)
    assert trellis("serve", "--port", "0").exit_code == 0
    assert served


@pytest.mark.either_engine
def test_the_panel_is_told_by_its_public_address(
    trellis: Trellis, served: list[tuple[Settings, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_PUBLIC_URL", "https://structure.example")
    base, _, panel, *_, link = trellis("serve", "--port", "0").stdout.splitlines()
    assert base.startswith("Base URL:   http://127.0.0.1:")
    assert panel == "Panel:      https://structure.example/admin"
    assert link.startswith("  https://structure.example/admin/first-run/")
    assert served


def test_a_sqlite_database_is_made_first(
    cli: Trellis, nowhere: Environment, served: list[tuple[Settings, int]], caplog: pytest.LogCaptureFixture
) -> None:
    nowhere(database_url="sqlite:///lantern.db")

    with caplog.at_level("INFO", "trellis"):
        result = cli("serve", "--port", "0")

    assert result.exit_code == 0
    assert caplog.messages[0] == "Created a new database: lantern.db"
    assert len(served) == 1
    assert cli("migrate").stdout.startswith("Nothing to do")


def test_an_older_sqlite_database_is_brought_up_to_date_which_is_told_beforehand(
    cli: Trellis, nowhere: Environment, served: list[tuple[Settings, int]], caplog: pytest.LogCaptureFixture
) -> None:
    migrate(Settings(database_url="sqlite:///lantern.db"), to="0040")
    nowhere(database_url="sqlite:///lantern.db")

    with caplog.at_level("INFO", "trellis"):
        result = cli("serve", "--port", "0")

    assert (result.exit_code, len(served)) == (0, 1)
    assert caplog.messages[0].startswith("Bringing the database lantern.db up to date.")
    assert caplog.messages[1] == "Brought the database lantern.db up to date."


def test_demo_loads_the_sample_once_and_prints_a_fresh_key_each_time(
    trellis: Trellis, trellis_json: TrellisJson, served: list[tuple[Settings, int]]
) -> None:
    first = trellis("serve", "--port", "0", "--demo")
    assert trellis("run", "forums.delete", "id=2").exit_code == 0
    second = trellis("serve", "--port", "0", "--demo")

    assert len(served) == 2
    shown = [found[2] for result in (first, second) if (found := TRY.search(result.stdout))]
    assert len(set(shown)) == 2
    assert f"Demo key:   {shown[0]}  (may do everything)\n" in first.stdout
    assert f"Demo key:   {shown[1]}  (may do everything; the one before it is valid for another day)\n" in second.stdout
    (key,) = trellis_json("keys", "list")
    assert (key["name"], len(key["grants"])) == ("Demo", GRANTABLE)
    assert key["oldSecretUntil"] is not None
    assert trellis_json("run", "forums.list")["totalResults"] == 54


def test_the_addresses_of_records_in_a_demonstration_follow_the_port_until_one_is_set(
    cli: Trellis, nowhere: Environment, served: list[tuple[Settings, int]]
) -> None:
    nowhere(database_url="sqlite:///lantern.db")
    shown = TRY.search(cli("serve", "--port", "0", "--demo").stdout)
    assert shown is not None
    assert served[0][0].community_url == shown[1].removesuffix("/api")
    nowhere(database_url="sqlite:///lantern.db", community_url="https://lantern.example")
    cli("serve", "--port", "0", "--demo")
    assert served[1][0].community_url == "https://lantern.example"


def test_a_demo_key_gets_back_what_was_taken_from_it_until_it_is_revoked(
    trellis: Trellis, trellis_json: TrellisJson, served: list[tuple[Settings, int]]
) -> None:
    trellis("serve", "--port", "0", "--demo")
    trellis("keys", "ungrant", "1", "forums.*")
    trellis("serve", "--port", "0", "--demo")
    assert len(trellis_json("keys", "show", "1")["grants"]) == GRANTABLE

    trellis("keys", "revoke", "1")
    trellis("serve", "--port", "0", "--demo")
    assert [key["state"] for key in trellis_json("keys", "list")] == ["revoked", "active"]
    assert len(served) == 3


@pytest.mark.either_engine
def test_a_port_in_use_is_a_sentence(trellis: Trellis, trellis_json: TrellisJson, served: list[tuple[Settings, int]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = trellis("serve", "--port", port, "--demo")

    assert result.exit_code == 1
    assert result.stderr == (
        f"Port {port} on 127.0.0.1 is in use by another program. Stop that one, or choose another with --port.\n"
    )
    assert result.stdout == ""
    assert served == []
    assert trellis_json("keys", "list") == []


@pytest.mark.either_engine
def test_a_port_for_metrics_that_cannot_be_is_a_sentence(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}METRICS_LISTEN", "9464")
    result = trellis("serve", "--port", "0")
    assert (result.exit_code, "nobody may read the metrics" in result.stderr) == (2, True)
    monkeypatch.setenv(f"{PREFIX}METRICS_TOKEN", "a-long-text-that-nobody-guesses")
    result = trellis("serve", "--port", "9464")
    assert (result.exit_code, "a port that nothing else has" in result.stderr) == (2, True)
    monkeypatch.setenv(f"{PREFIX}METRICS_LISTEN", "public:port")
    result = trellis("serve", "--port", "0")
    assert (result.exit_code, "such as 127.0.0.1:9464" in result.stderr) == (2, True)


@pytest.mark.either_engine
def test_an_address_that_is_not_of_this_machine_is_a_sentence(trellis: Trellis) -> None:
    result = trellis("serve", "--host", "192.0.2.1", "--port", "0")

    assert result.exit_code == 1
    assert result.stderr.startswith("The service cannot listen on 192.0.2.1, port 0: ")


@pytest.mark.either_engine
@pytest.mark.parametrize("host", ["\udcff", "x" * 64])
def test_a_host_that_is_no_address_is_a_sentence(trellis: Trellis, host: str) -> None:
    result = trellis("serve", "--host", host, "--port", "0")

    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "is not an address of this machine" in result.stderr


@pytest.mark.either_engine
@pytest.mark.parametrize("arguments", [("--port", "70000"), ("--workers", "0"), ("--port", "http"), ("--host", "")])
def test_what_cannot_be_meant_is_a_usage_error(trellis: Trellis, arguments: tuple[str, ...]) -> None:
    assert trellis("serve", *arguments).exit_code == 2


# --- the running service ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_sigterm_lets_a_request_in_flight_finish(serve: MakeService, settings: Settings, key: MakeKey) -> None:
    running, text, body = serve(), key("*"), b'{"name": "Last words"}'
    with closing(open_sqlite(settings)) as other:
        other.execute("BEGIN IMMEDIATE")
        with begin_post(running.port, "/api/forums/forums", text, body, 1) as connection:
            running.process.send_signal(signal.SIGTERM)
            connection.sendall(body[1:])
            wait_until(lambda: refuses_connections(running.port))
            assert running.running
            other.execute("ROLLBACK")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 201 ")
        assert running.process.wait(60) == 0
        assert other.execute("SELECT count(*) FROM nodes WHERE name = 'Last words'").fetchone() == (1,)
    assert levels_of(running.output) <= {"INFO", "WARNING"}


@pytest.mark.either_engine
def test_workers_without_room_for_a_folder_are_told_what_to_do(
    trellis: Trellis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    result = trellis("serve", "--port", "0", "--workers", "2")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "The workers need a folder in which they share their metrics, and it cannot be created: No usable"
    )
    assert result.stderr.endswith("Free some space, or set TMPDIR to a folder that this process may write to.\n")


def test_several_workers_serve_one_community(serve: MakeService) -> None:
    running = serve(options=("--demo", "--workers", "2"))
    told = TRY.search(running.output)
    assert told, running.output
    with httpx.Client(base_url=told[1], headers={"Authorization": f"Bearer {told[2]}"}, timeout=60) as client:
        for _ in range(5):
            assert client.post("/forums/forums", json={"name": "News"}).status_code == 201
        assert client.get("/forums/forums?search=news").json()["totalResults"] == 5
    assert running.terminate() == 0
    assert levels_of(running.output) <= {"INFO", "WARNING"}
