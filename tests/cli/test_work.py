"""`trellis work`: delivery apart from serving."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fixture_types import Run
from tests.forked import ForkedProcess
from tests.service_process import Service, environment
from tests.wait import GIVE_UP, wait_until
from tests.webhook_receiver import Receiver
from trellis.settings import Settings


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Settings that let webhooks go to this machine."""
    return replace(settings, webhook_allow=("127.0.0.1",))


def test_work_delivers_until_it_is_told_to_end(settings: Settings, run: Run, tmp_path: Path) -> None:
    (output := tmp_path / "output").touch()
    with Receiver() as receiver:
        process = ForkedProcess(("work",), tmp_path, environment(settings), output)
        try:
            run("webhooks.create", url=receiver.url, events=["*"])
            run("forums.create", name="News")
            wait_until(lambda: receiver.distinct)
            process.terminate()
            assert process.wait(GIVE_UP) == 0
        finally:
            process.kill()
    began, ended = output.read_text().splitlines()
    assert began.endswith(" INFO trellis.cli.work: Delivering webhooks. Send SIGTERM to stop.")
    assert ended.endswith(" INFO trellis.cli.work: Trellis has stopped.")


@pytest.mark.parametrize("delivery", [True, False])
def test_serve_delivers_too_unless_it_is_told_not_to(settings: Settings, run: Run, tmp_path: Path, delivery: bool) -> None:
    with Receiver() as receiver, Service(replace(settings, webhook_delivery=delivery), tmp_path) as service:
        run("webhooks.create", url=receiver.url, events=["*"])
        run("forums.create", name="News")
        if delivery:
            wait_until(lambda: receiver.distinct)
        else:
            time.sleep(1.5)
            assert receiver.received == []
        assert service.terminate() == 0
        assert "Traceback" not in service.output


def test_off_is_off() -> None:
    assert Settings.load({"TRELLIS_WEBHOOK_DELIVERY": "off"}, None).webhook_delivery is False
