"""The guard: one lookup, every address judged, and that very address connected to."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final

import pytest

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from tests.wait import GIVE_UP
from tests.webhook_receiver import Receiver, respond_with
from tests.webhooks.conftest import Off, deliver
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.core.webhooks.address import NotAllowed
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.webhooks.guard import Guard, resolve_name
from trellis.webhooks.sender import Sender
from trellis.webhooks.worker import DeliveryWorker

TLS: Final = Path(__file__).parent / "tls"  # a certificate for hooks.test, signed by itself
sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


class Names:
    """A resolver that answers as it is told, the last answer again and again; it counts what it was asked."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        del port
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def attempts(run: Run) -> list[dict[str, Any]]:
    return [attempt for one in reversed(run("deliveries.list", webhook=1)["results"]) for attempt in one["attempts"]]


@sqlite
def test_a_name_is_looked_up_once_and_its_address_is_connected_to(run: Run, receiver: Receiver, work_off: Off) -> None:
    names = Names(["127.0.0.1"])
    run("webhooks.create", url=f"http://hooks.test:{receiver.port}/hook", events=["*"])
    run("forums.create", name="News")
    work_off(resolve=names)
    assert names.asked == ["hooks.test"]
    assert receiver.received[0].headers["host"] == f"hooks.test:{receiver.port}"


@pytest.mark.parametrize("host", ["xn--i-7iq.test", "xn--a_b.test"])
def test_a_name_that_cannot_be_decoded_is_looked_up_like_any_other(receiver: Receiver, host: str) -> None:
    names = Names(["127.0.0.1"])

    async def send() -> int | None:
        sender = Sender(Guard((ip_network("127.0.0.1/32"),), names))
        try:
            return (await sender.send(f"http://{host}:{receiver.port}/hook", {}, b"{}")).status
        finally:
            await sender.close()

    assert asyncio.run(send()) == 200
    assert names.asked == [host]
    assert receiver.received[0].headers["host"] == f"{host}:{receiver.port}"


@sqlite
def test_a_private_address_at_the_second_lookup_is_not_connected_to(run: Run, receiver: Receiver, work_off: Off) -> None:
    receiver.answer = respond_with(200, Connection="close")
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    run("webhooks.create", url=f"http://hooks.test:{receiver.port}/hook", events=["*"])
    run("forums.create", name="One")
    run("forums.create", name="Two")
    work_off(resolve=names)
    assert names.asked == ["hooks.test"] * 2
    first, second = attempts(run)
    assert (first["status"], first["error"]) == (200, None)
    assert second["status"] is None
    assert second["error"].startswith("The address leads to 127.0.0.2, which is not on the public internet")
    assert len(receiver.received) == 1


@sqlite
@pytest.mark.parametrize("found", [["127.0.0.1", "10.0.0.5"], ["::ffff:10.0.0.5"], ["fe80::1%eth0"], ["169.254.169.254"]])
def test_a_name_of_which_one_address_is_closed_is_closed(run: Run, receiver: Receiver, work_off: Off, found: list[str]) -> None:
    run("webhooks.create", url=f"http://hooks.test:{receiver.port}/hook", events=["*"])
    run("forums.create", name="News")
    work_off(resolve=Names(found))
    assert "not on the public internet" in attempts(run)[0]["error"]
    assert receiver.received == []


@sqlite
def test_what_was_allowed_when_it_was_made_is_judged_at_each_attempt(settings: Any, run: Run, receiver: Receiver) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    with pytest.raises(NotAllowed):
        Guard(()).check_url(receiver.url)
    Guard(tuple(map(ip_network, settings.webhook_allow))).check_url(receiver.url)


@sqlite
@pytest.mark.parametrize(
    ("changes", "reason"), [({"webhook_hosts": ("hooks.example",)}, "WEBHOOK_HOSTS"), ({"require_tls": True}, "REQUIRE_TLS")]
)
def test_a_setting_made_later_holds_for_webhooks_of_before(
    settings: Settings, run: Run, receiver: Receiver, clock: Clock, changes: dict[str, Any], reason: str
) -> None:
    run("webhooks.create", url=receiver.url, events=["*"])
    run("forums.create", name="News")
    gate = compose(replace(settings, **changes), clock=clock)
    with closing(gate.store):
        asyncio.run(deliver(DeliveryWorker(gate)))
        (told,) = attempts(runner(gate))
        assert reason in told["error"]
        with pytest.raises(Refused, match=f"ADDRESS_NOT_ALLOWED: .*{reason}"):
            runner(gate)("webhooks.create", url="http://other.example/", events=["*"])
        if "require_tls" not in changes:
            runner(gate)("webhooks.create", url="https://hooks.example/", events=["*"])
    assert receiver.received == []


@sqlite
def test_a_name_without_an_address_is_a_failure_in_words(run: Run, work_off: Off) -> None:
    run("webhooks.create", url="http://hooks.test/hook", events=["*"])
    run("forums.create", name="News")
    work_off(resolve=Names([]))
    assert attempts(run)[0]["error"] == "The connection was interrupted: hooks.test has no address"


@sqlite
def test_proxies_of_the_environment_are_not_used(
    run: Run, receiver: Receiver, work_off: Off, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    run("webhooks.create", url=receiver.url, events=["*"])
    run("forums.create", name="News")
    work_off()
    assert len(receiver.received) == 1


@pytest.fixture
def secure() -> Iterator[Receiver]:
    """A receiver with the certificate of hooks.test."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    with Receiver(tls=context) as receiver:
        yield receiver


@sqlite
def test_a_certificate_that_nobody_vouches_for_is_a_failure(run: Run, secure: Receiver, work_off: Off) -> None:
    run("webhooks.create", url=f"https://hooks.test:{secure.port}/hook", events=["*"])
    run("forums.create", name="News")
    work_off(resolve=Names(["127.0.0.1"]))
    assert "CERTIFICATE_VERIFY_FAILED" in attempts(run)[0]["error"]
    assert secure.received == []


@sqlite
@pytest.mark.parametrize(("host", "good"), [("hooks.test", True), ("other.test", False)])
def test_tls_goes_by_the_name_though_the_address_is_connected_to(
    run: Run, secure: Receiver, work_off: Off, host: str, good: bool
) -> None:
    run("webhooks.create", url=f"https://{host}:{secure.port}/hook", events=["*"])
    run("forums.create", name="News")
    work_off(resolve=Names(["127.0.0.1"]), tls=ssl.create_default_context(cafile=TLS / "certificate.pem"))
    assert len(secure.received) == good
    assert (attempts(run)[0]["error"] is None) == good


def test_the_systems_resolver_is_asked_in_a_thread() -> None:
    assert "127.0.0.1" in asyncio.run(resolve_name("localhost", 80))
    with pytest.raises(OSError, match=r".+"):
        asyncio.run(resolve_name("a" * 70, 80))


@sqlite
def test_a_lookup_for_which_there_is_no_thread_is_a_failed_attempt(
    gate: Gate, run: Run, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("webhooks.create", url=f"http://hooks.test:{receiver.port}", events=["*"])
    run("forums.create", name="News")

    async def scene() -> None:
        worker = DeliveryWorker(gate)
        try:
            await worker.look()
            with monkeypatch.context() as without_threads:
                without_threads.setattr("trellis.webhooks.guard.threading.Thread", NoThread)
                await worker.settle()
        finally:
            await worker.close()

    asyncio.run(scene())
    assert [one["error"] for one in attempts(run)] == ["The connection was interrupted: can't start new thread"]


class NoThread(threading.Thread):
    """A thread for which the system has no room."""

    def start(self) -> None:
        raise RuntimeError("can't start new thread")


def test_after_an_outage_of_its_name_server_everything_comes_in_order(
    run: Run, receiver: Receiver, work_off: Off, clock: Clock
) -> None:
    async def wait(_host: str, _port: int) -> list[str]:
        await asyncio.sleep(GIVE_UP)
        return []

    run("webhooks.create", url=f"http://hooks.test:{receiver.port}", events=["forum.*"])
    names = [f"Forum {number}" for number in range(12)]
    for name in names:
        run("forums.create", name=name)
        work_off(timeout=0.01, resolve=wait)
        clock.move(seconds=61)
    assert receiver.received == []
    work_off(resolve=Names(["127.0.0.1"]))
    assert [one.name for one in receiver.received] == names
