"""Talking to the mail server: encryption, signing in, refusals, and what a mail looks like."""

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.mail_receiver import PASSWORD, USER, MailReceiver, text_of, trusting
from trellis.mail import MailServer, NotSent
from trellis.settings import Settings, SettingsError

MIRA = "mira@lantern.example"


def server_for(receiver: MailReceiver, host: str = "127.0.0.1", **settings: Any) -> MailServer:
    given = {"smtp_tls": "off"} | settings
    whole = replace(Settings(), smtp_host=host, smtp_port=receiver.port, smtp_from="The Lantern <panel@lantern.example>", **given)
    return MailServer(whole, trusting())


def test_a_mail_is_plain_text_from_whom_the_settings_say() -> None:
    with MailReceiver() as receiver:
        server = server_for(receiver)
        assert "not encrypted" in server.check()
        server.send(MIRA, "Grüße", "A line — with “quotes”.\n.\n", "1f")
    (mail,) = receiver.received
    assert receiver.recipients == [MIRA]
    assert mail["From"] == "The Lantern <panel@lantern.example>"
    assert (mail["To"], mail["Subject"], mail["Message-ID"]) == (MIRA, "Grüße", "<1f@lantern.example>")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert (mail.get_content_type(), text_of(mail)) == ("text/plain", "A line — with “quotes”.\n.\n")


def test_no_header_can_be_added_by_a_subject() -> None:
    with MailReceiver() as receiver, pytest.raises(ValueError, match="linefeed"):
        server_for(receiver).send(MIRA, "News\r\nBcc: eve@evil.example", "Text", "1f")
    assert receiver.received == []


def test_a_mail_in_another_language_asks_nothing_of_the_server() -> None:
    text = "Mira Holm hat den API-Schlüssel Plugin erstellt.\nÄÖÜ\n"
    with MailReceiver() as receiver:
        server_for(receiver).send(MIRA, "Schlüssel", text, "1f")
    (mail,) = receiver.received
    assert mail.as_bytes().isascii(), "or it would need the extension 8BITMIME"
    assert text_of(mail) == text


@pytest.mark.parametrize("name", ["Lantern, Inc.", "Bücher; Söhne", "[Test]", "A: B", 'The "Lantern"', '"Lantern, Inc."'])
def test_whom_mail_is_from_may_have_any_name(name: str) -> None:
    with MailReceiver() as receiver:
        settings = Settings.load(
            {
                "TRELLIS_SMTP_HOST": "127.0.0.1",
                "TRELLIS_SMTP_PORT": str(receiver.port),
                "TRELLIS_SMTP_TLS": "off",
                "TRELLIS_SMTP_FROM": f"{name} <panel@lantern.example>",
            },
            None,
        )
        MailServer(settings).send(MIRA, "One", "Text", "1f")
    (mail,) = receiver.received
    (sender,) = mail["From"].addresses
    assert (sender.display_name, sender.addr_spec) == ("Lantern, Inc." if name.startswith('"') else name, "panel@lantern.example")
    assert mail["Message-ID"] == "<1f@lantern.example>"


@pytest.mark.parametrize("start", ["", "Grüße: "])
def test_a_subject_that_looks_encoded_says_what_it_says(start: str) -> None:
    subject = f"{start}A key named =?utf-8?q?x=0D=0ABcc=3A_eve=40evil.example=0D=0A=0D=0AText?= was created, {'and more ' * 10}"
    with MailReceiver() as receiver:
        server_for(receiver).send(MIRA, subject, "Text", "1f")
    (mail,) = receiver.received
    assert (mail["Subject"], mail["Bcc"], text_of(mail)) == (subject, None, "Text\n")


def test_starttls_comes_before_the_password_and_a_wrong_one_is_told_without_it(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    with MailReceiver(starttls=True, auth=True) as receiver:
        secured = {"smtp_tls": "starttls", "smtp_user": USER}
        assert "encrypted, signed in" in server_for(receiver, "localhost", **secured, smtp_password=PASSWORD).check()
        server_for(receiver, "localhost", **secured, smtp_password_file=str(file)).send(MIRA, "One", "Text", "1f")
        with pytest.raises(NotSent, match="did not let trellis sign in: 535") as refused:
            server_for(receiver, "localhost", **secured, smtp_password="wrong and secret").check()
        assert "secret" not in str(refused.value)
        with pytest.raises(NotSent, match=r"^The file that TRELLIS_SMTP_PASSWORD_FILE names has more than 65,536 characters\."):
            server_for(receiver, "localhost", **secured, smtp_password_file="/dev/zero").check()
        assert not refused.value.is_final, "the operator can put it right"
        unknown = MailServer(replace(Settings(), smtp_host="localhost", smtp_port=receiver.port, smtp_from=MIRA))
        with pytest.raises(NotSent, match="CERTIFICATE_VERIFY_FAILED"):
            unknown.check()
    assert len(receiver.received) == 1


def test_a_server_without_starttls_gets_nothing() -> None:
    with MailReceiver() as receiver, pytest.raises(NotSent, match="STARTTLS"):
        server_for(receiver, smtp_tls="starttls").send(MIRA, "One", "Text", "1f")
    assert receiver.received == []


def test_encrypted_from_the_first_byte() -> None:
    with MailReceiver(tls=True) as receiver:
        server_for(receiver, "localhost", smtp_tls="tls").send(MIRA, "One", "Text", "1f")
    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("answer", "is_final"), [("550 No such user", True), ("450 Come again", False), ("250 Known", None)], ids=str
)
def test_what_will_never_be_taken_is_told_apart(answer: str, is_final: bool | None) -> None:
    with MailReceiver() as receiver:
        if is_final is None:
            receiver.data_answer, is_final = "554 Looks like spam\x1b[31m", True
        receiver.answers = [answer]
        with pytest.raises(NotSent) as refused:
            server_for(receiver).send(MIRA, "One", "Text", "1f")
    assert refused.value.is_final is is_final
    assert str(refused.value).isprintable()


def test_a_link_that_a_server_quotes_is_told_nobody() -> None:
    token = "q" * 43
    with MailReceiver() as receiver:
        receiver.data_answer = f"554 Bad words: lantern.example/admin/invitation/{token} and https://lantern.example/x"
        with pytest.raises(NotSent, match="Bad words") as refused:
            server_for(receiver).send(MIRA, "One", "Text", "1f")
    assert token not in str(refused.value)
    assert "https" not in str(refused.value)


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[MailServer]:
    """A mail server that says what `talk` says to the first who connects."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            talk(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        yield MailServer(replace(Settings(), smtp_host="127.0.0.1", smtp_port=port, smtp_from="a@lantern.example", smtp_tls="off"))
        thread.join(10)


@pytest.mark.parametrize("before", [b"", b"220 mail.example\r\n"], ids=["greeting", "answer"])
def test_a_server_that_never_ends_what_it_says_is_cut_and_the_reason_told(before: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.mail.server._WHOLE", 0.3)

    def drip(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:  # each byte is in time
            connection.sendall(b"2")
            select.select([], [], [], 0.02)

    with raw_server(drip) as server, pytest.raises(NotSent, match="took too long"):
        server.check()


def test_answers_without_an_end_are_not_read_to_it() -> None:
    def flood(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"220-again and again\r\n" * 100)

    with raw_server(flood) as server, pytest.raises(NotSent, match="without an end"):
        server.check()


def take_mail(connection: socket.socket, taken: bytes, farewell: bytes) -> None:
    """Take a mail, answer it with `taken` and the farewell with `farewell`; hang up after an answer without an end."""
    file = connection.makefile("rwb", buffering=0)
    file.write(b"220 mail.test\r\n")
    for line in file:
        answer = farewell if line.upper().startswith(b"QUIT") else b"250 Yes\r\n"
        if line.upper().startswith(b"DATA"):
            file.write(b"354 Go on\r\n")
            while file.readline() != b".\r\n":
                pass
            answer = taken
        file.write(answer)
        if answer == farewell or not answer.endswith(b"\n"):
            return


def test_what_was_taken_is_sent_whatever_is_answered_to_the_farewell() -> None:
    with raw_server(lambda connection: take_mail(connection, b"250 Yes\r\n", b"500 What?\r\n")) as server:
        server.send(MIRA, "One", "Text", "1f")


def test_a_mail_is_not_sent_before_the_server_has_said_so_in_full() -> None:
    with (
        raw_server(lambda connection: take_mail(connection, b"250", b"")) as server,
        pytest.raises(NotSent, match="hung up within an answer"),
    ):
        server.send(MIRA, "One", "Text", "1f")


def test_no_part_of_a_password_that_cannot_be_sent_is_told() -> None:
    with MailReceiver(starttls=True, auth=True) as receiver:
        given = {"smtp_tls": "starttls", "smtp_user": USER, "smtp_password": "schlüssel"}
        with pytest.raises(NotSent, match="cannot be sent to the server"):
            server_for(receiver, "localhost", **given).check()


def test_nobody_at_the_port_is_told() -> None:
    with MailReceiver() as receiver:
        server = server_for(receiver)
    with pytest.raises(NotSent, match="refused") as refused:
        server.check()
    assert not refused.value.is_final


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"SMTP_HOST": "mail.example"}, "SMTP_FROM"),
        ({"SMTP_HOST": "mail.example", "SMTP_FROM": "a@b.example", "SMTP_USER": "x"}, "SMTP_PASSWORD"),
        (
            {"SMTP_HOST": "m.example", "SMTP_FROM": "a@b.example", "SMTP_USER": "x", "SMTP_PASSWORD": "y", "SMTP_TLS": "off"},
            "sent unencrypted",
        ),
        ({"SMTP_FROM": "a@b.example\nBcc: eve@evil.example"}, "SMTP_FROM"),
        ({"SMTP_HOST": "mail.example:25"}, "SMTP_HOST"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_settings_that_do_not_fit_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Settings.load({f"TRELLIS_{name}": value for name, value in given.items()}, None)
