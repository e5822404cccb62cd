"""Two processes on one PostgreSQL database behind a balancer, with the configuration that docs/scaling-out.md shows."""

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.held_port import held_port
from tests.program import running
from tests.service_process import Service
from tests.wait import GIVE_UP, wait_until
from trellis.core.structure import LARGEST_DOCUMENT

MANUAL: Final = Path(__file__).parents[2] / "docs" / "scaling-out.md"
FORUMS: Final = "/api/forums/forums"
PASSWORD: Final = "correct horse battery"
CALLER, STRANGER = "127.0.0.2", "127.0.0.3"  # addresses of this machine
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("engine", ["postgresql"], indirect=True)]


def program(name: str) -> str:
    """Find a balancer, or install it where that is possible and starts nothing: as root of a container with apt."""
    path = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    if found := shutil.which(name, path=path):
        return found
    if os.geteuid() or not shutil.which("apt-get") or Path("/run/systemd/system").exists():
        pytest.skip(f"{name} is not installed, and is not installed without being asked outside of a container.")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "-qq", "update"], ["apt-get", "-qq", "install", "-y", "--no-install-recommends", name]):
        try:
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=90)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"{name} is not installed, and could not be: {error}")
    found = shutil.which(name, path=path)
    assert found is not None
    return found


def shown(language: str) -> str:
    """Return the configuration that the manual shows."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", MANUAL.read_text("utf-8"), re.DOTALL)
    return str(found)


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    """Replace what has to be another on this machine; each of it must be there."""
    for old, new in pairs:
        assert re.search(old, text), old
        text = re.sub(old, new, text)
    return text


def nginx(folder: Path, port: int, one: int, two: int) -> list[str]:
    """Write a configuration for nginx; give the command that runs it."""
    server = replaced(
        shown("nginx"),
        (r"10\.0\.0\.11:8000", f"127.0.0.1:{one}"),
        (r"10\.0\.0\.12:8000", f"127.0.0.1:{two}"),
        (r"listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        (r" +ssl_.*\n", ""),
    )
    user = "" if os.geteuid() else "user root;"
    kept = "".join(f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; {user} worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off;\n{kept}{server} }}\n"
    )
    return [program("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]


def haproxy(folder: Path, port: int, one: int, two: int) -> list[str]:
    """Write a configuration for HAProxy; give the command that runs it."""
    text = replaced(
        shown("haproxy"),
        (r"10\.0\.0\.11:8000", f"127.0.0.1:{one}"),
        (r"10\.0\.0\.12:8000", f"127.0.0.1:{two}"),
        (r"bind :443 ssl .*", f"bind 127.0.0.1:{port}"),
        (r"X-Forwarded-Proto https", "X-Forwarded-Proto http"),
    )
    (folder / "haproxy.cfg").write_text(text)
    return [program("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]


@dataclass
class Balanced:
    """Two services, and the address of what stands before them."""

    services: tuple[Service, Service]
    address: str

    def client(self, key: str | None = None, source: str = "127.0.0.1") -> httpx.Client:
        """Make a client that calls from an address of this machine."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        transport = httpx.HTTPTransport(local_address=source)
        return httpx.Client(base_url=self.address, headers=headers, transport=transport, timeout=GIVE_UP, trust_env=False)


@pytest.fixture(params=[nginx, haproxy])
def balanced(request: pytest.FixtureRequest, serve: MakeService, tmp_path: Path) -> Iterator[Balanced]:
    """Two services behind nginx, and behind HAProxy."""
    program(request.param.__name__)
    services = serve(trusted_proxies=("127.0.0.1",)), serve(trusted_proxies=("127.0.0.1",))
    with ExitStack() as stack:
        port = stack.enter_context(held_port())
        command = request.param(tmp_path, port, *(service.port for service in services))
        address = f"http://127.0.0.1:{port}"
        output = stack.enter_context((tmp_path / "balancer.log").open("wb"))
        process = stack.enter_context(running(command, stdout=output, stderr=output))
        wait_until(lambda: process.poll() is not None or _answers(address))
        assert process.poll() is None, (tmp_path / "balancer.log").read_text()
        yield Balanced(services, address)
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_requests_are_shared_and_writes_and_revocations_hold_for_both(
    balanced: Balanced, community: Community, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    text = key("*")
    with balanced.client(text) as client:
        for number in range(6):
            wanted = f"News {number}"
            assert client.post(f"{FORUMS}/{community.news}", json={"name": wanted}).status_code == 200
            assert client.post(f"{FORUMS}/{community.news}", json={"name": wanted}).status_code == 200  # changes nothing

            def told(wanted: str = wanted) -> bool:
                return {client.get(f"{FORUMS}/{community.news}").json()["name"] for _ in range(4)} == {wanted}

            wait_until(told)
        made = client.post(FORUMS, json={"name": "By way of the balancer"})
        assert made.headers["location"] == f"{balanced.address}{FORUMS}/{made.json()['id']}"
        run("keys.revoke", 1)
        wait_until(lambda: {client.get(FORUMS).status_code for _ in range(4)} == {401})
    for service in balanced.services:
        assert service.call("GET", "/forums/forums", text).status_code == 401
        assert service.terminate() == 0
    assert len([event for event in database.events() if event["operation"] == "forums.update"]) == 6


def test_addresses_are_those_of_the_callers(balanced: Balanced, key: MakeKey, run: Run) -> None:
    text = key("forums.list", addresses=[CALLER])
    with balanced.client(text, CALLER) as caller, balanced.client(text, STRANGER) as stranger:
        for _ in range(4):
            assert caller.get(FORUMS).status_code == 200
            assert stranger.get(FORUMS).json()["errorMessage"] == "IP_ADDRESS_NOT_ALLOWED"
            assert stranger.get(FORUMS, headers={"X-Forwarded-For": CALLER}).status_code == 403
    for service in balanced.services:
        assert service.terminate() == 0
    logged = {(row["address"], row["status"]) for row in run("requests.list", limit=100)["results"]}
    assert logged == {(CALLER, 200), (STRANGER, 403)}


def test_a_document_of_any_size_comes_through(balanced: Balanced, key: MakeKey) -> None:
    head = "format: trellis/1\nname: long\nforums: [{externalId: news, name: News}]\n# "
    document = head + "x" * (LARGEST_DOCUMENT - len(head) - 100)
    with balanced.client(key("*")) as client:
        answer = client.post("/api/core/structure/plan", json={"document": document})
    assert answer.status_code == 200, answer.text


def test_who_has_signed_in_is_known_to_both(balanced: Balanced, run: Run) -> None:
    run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)
    with balanced.client() as browser:
        token = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/admin/sign-in").text)
        assert token is not None
        form = {"login": "mira", "password": PASSWORD, "csrf": token[1]}
        assert browser.post("/admin/sign-in", data=form).status_code == 303
        for _ in range(6):
            assert "Mira Holm" in browser.get("/admin").text
        for service in balanced.services:
            assert "Mira Holm" in httpx.get(f"{service.address}/admin", cookies=browser.cookies, trust_env=False).text
        with browser.stream("GET", "/admin/news", headers={"Accept": "text/event-stream"}) as stream:
            news = (line for line in stream.iter_lines() if line.startswith("data: ["))
            assert next(news) == "data: []"  # a stream comes through as it is written
            run("forums.create", name="News")
            assert "events/forums" in next(news)


@dataclass
class Writer:
    """Creates one forum after the other; what was not acknowledged is sent again, and is made once all the same."""

    name: str
    balanced: Balanced
    key: str
    enough: threading.Event
    acknowledged: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def write(self) -> None:
        with self.balanced.client(self.key) as client:
            for number in count():
                if self.enough.is_set():
                    return
                self.make(client, f"{self.name}-{number}")

    def make(self, client: httpx.Client, wanted: str) -> None:
        for _ in range(1000):
            try:
                answer = client.post(FORUMS, json={"name": wanted}, headers={"Idempotency-Key": wanted})
            except httpx.TransportError:
                time.sleep(0.05)
                continue
            if answer.status_code == 201:
                self.acknowledged[wanted] = answer.json()["id"]
                return
            if answer.status_code not in {409, 502, 503, 504}:
                self.wrong.append(answer.text)
        self.wrong.append(f"{wanted} could not be made")


def test_nothing_acknowledged_is_lost_when_one_is_killed_and_the_other_goes_on(balanced: Balanced, key: MakeKey, run: Run) -> None:
    enough, text = threading.Event(), key("*", rateLimit=0)
    writers = [Writer(f"writer-{number}", balanced, text, enough) for number in range(4)]
    writing = [threading.Thread(target=writer.write) for writer in writers]

    def made() -> int:
        return sum(len(writer.acknowledged) for writer in writers)

    for thread in writing:
        thread.start()
    try:
        wait_until(lambda: made() > 15)
        balanced.services[0].kill()
        before = made()
        wait_until(lambda: made() > before + 15)
    finally:
        enough.set()
        for thread in writing:
            thread.join()
    assert [wrong for writer in writers for wrong in writer.wrong] == []
    with balanced.client(text) as client:
        assert [client.get(FORUMS).status_code for _ in range(8)] == [200] * 8
    listed = run("forums.list", search="writer-", perPage=1000)
    found = {forum["name"]: forum["id"] for forum in listed["results"]}
    assert listed["totalResults"] == len(found) == made(), "each was made, and once"
    assert all(writer.acknowledged.items() <= found.items() for writer in writers)
    assert run("check.list")["problems"] == []
