"""A mail server in this process, settings that name it, and the worker's turn."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.conftest import NewSettings
from tests.mail_receiver import MailReceiver
from trellis.core.gate import Gate
from trellis.mail import Mailer, MailServer
from trellis.settings import Settings

Send = Callable[[], int]


@pytest.fixture
def receiver() -> Iterator[MailReceiver]:
    with MailReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(new_settings: NewSettings, receiver: MailReceiver) -> Settings:
    return replace(
        new_settings(),
        public_url="https://lantern.example",
        smtp_host="127.0.0.1",
        smtp_port=receiver.port,
        smtp_tls="off",
        smtp_from="panel@lantern.example",
    )


@pytest.fixture
def send(gate: Gate, settings: Settings) -> Send:
    """Do once what the worker does again and again; return how many mails were sent."""
    return Mailer(gate, MailServer(settings)).work
