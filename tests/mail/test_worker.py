"""From an alarm to the mail that tells it: who gets it, how often, and what an outage or a crash leaves of it."""

import re
import sys
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from subprocess import run as run_program
from typing import Any, Final

import pytest

from tests.conftest import NewSettings
from tests.fixture_types import Clock, Run
from tests.mail.conftest import Send
from tests.mail_receiver import MailReceiver, text_of
from tests.wait import wait_until
from trellis.compose import compose
from trellis.core.actor import Actor
from trellis.core.admins import set_view
from trellis.core.gate import Gate
from trellis.core.mail import Draft, begin_attempt, settle
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.mail import Mailer, MailServer, worker
from trellis.settings import Settings

MIRA: Final = "mira@lantern.example"
PASSWORD: Final = "correct horse battery"
ENGLISH: Final = re.compile(r"\b(the|is|are|of|you|and|made|more)\b", re.IGNORECASE)
PROGRAM: Final = Path(__file__).with_name("sending_process.py")


def add(run: Run, name: str, **raw: Any) -> int:
    made: dict[str, Any] = run("admins.create", name=name, login=name, password=PASSWORD, mustChangePassword=False, **raw)
    return int(made["id"])


def last_mail(run: Run, admin: int) -> dict[str, Any]:
    found: dict[str, Any] = run("admins.get", admin)["lastMail"]
    return found


def test_an_alarm_is_mailed_once_to_those_who_may_see_it_and_want_it(
    run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    mira = add(run, "Mira", email=MIRA)
    add(run, "Ada", email="ada@lantern.example", role="structure-editor")
    quiet = add(run, "Eve", email="eve@lantern.example")
    run("admins.update", quiet, mailedAlarms=["new-webhook"])
    add(run, "Without an address")
    assert send() == 2, "Mira and Ada, that they are administrators"
    clock.move(minutes=2)
    assert send() == 0
    event = (
        run("webhooks.create", url="https://hooks.example/a-secret-path", events=["*"])
        and run("events.list", limit=1000)["results"][-1]
    )
    assert (send(), send()) == (2, 0)
    assert sorted(receiver.recipients[2:]) == ["eve@lantern.example", MIRA]
    mail = receiver.received[-1]
    assert mail["Subject"].strip() == "[The Lantern] The terminal created a webhook that sends to hooks.example"
    assert f"https://lantern.example/admin/events/{event['seq']}" in text_of(mail)
    assert f"\n{event['at'][:10]} {event['at'][11:16]} UTC\n" in text_of(mail)
    assert "a-secret-path" not in mail.as_string()
    assert last_mail(run, mira) | {"at": None} == {"kind": "alarms", "state": "sent", "at": None, "error": None}


def test_a_mail_links_only_to_events_that_its_reader_may_open(run: Run, receiver: MailReceiver, send: Send) -> None:
    add(run, "Mira", email=MIRA)
    add(run, "Ada", email="ada@lantern.example", role="structure-editor")
    assert send() == 2
    linked = {to: "/admin/events/" in text_of(mail) for to, mail in zip(receiver.recipients, receiver.received, strict=True)}
    assert linked == {MIRA: True, "ada@lantern.example": False}
    assert all("https://lantern.example/admin/alarms" in text_of(mail) for mail in receiver.received)


def test_the_outcome_for_an_invitation_of_before_is_not_that_of_the_next(gate: Gate, run: Run, clock: Clock) -> None:
    """Even if SQLite gives both mails the same id."""
    invited = run("admins.invite", name="Mira", login="mira", email=MIRA)["id"]

    def claim() -> Draft:
        draft = gate.store.write(lambda tx: begin_attempt(tx, gate.environment, gate.now())).result(30)
        assert draft is not None
        return draft

    first = claim()
    clock.move(seconds=1)
    run("admins.renew_invitation", invited)
    second = claim()  # by another process
    for mail, error in ((first.mail, None), (second.mail, "no answer")):
        gate.store.write(partial(settle, taken=mail, error=error)).result(30)
    assert last_mail(run, invited)["state"] == "waiting"  # to be sent again


def test_many_alarms_are_few_mails(run: Run, receiver: MailReceiver, send: Send, clock: Clock) -> None:
    add(run, "Mira", email=MIRA)
    run("keys.create", name="The first")
    assert send() == 1
    for number in range(30):
        run("keys.create", name=f"Plugin {number}")
    assert send() == 0, "not within a minute"
    clock.move(minutes=2)
    assert (send(), send()) == (1, 0)
    assert receiver.received[1]["Subject"] == "[The Lantern] 20 alarms and more"
    assert "API key Plugin 29." in text_of(receiver.received[1])


def test_an_alarm_that_somebody_wants_is_not_lost_among_many_others(run: Run, receiver: MailReceiver, send: Send) -> None:
    eve = add(run, "Eve", email="eve@lantern.example")
    run("admins.update", eve, mailedAlarms=["new-webhook"])
    assert send() == 0
    run("webhooks.create", url="https://hooks.example", events=["*"])
    for number in range(30):
        run("keys.create", name=f"Plugin {number}")
    assert send() == 1
    assert "created a webhook" in text_of(receiver.received[0])
    assert "Plugin" not in text_of(receiver.received[0])


@pytest.mark.either_engine
def test_each_mail_is_in_the_language_that_its_reader_has_chosen(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    mira = add(run, "Mira", email=MIRA)
    set_view(gate, mira, language="de").result()
    add(run, "Ada", email="ada@lantern.example")
    assert send() == 2
    told = dict(zip(receiver.recipients, receiver.received, strict=True))
    assert told[MIRA]["Subject"] == "[The Lantern] 2 Alarme"
    assert told["ada@lantern.example"]["Subject"] == "[The Lantern] The terminal made Ada an administrator"
    run("keys.create", name="Erstes")
    clock.move(minutes=2)
    send()
    for number in range(30):
        run("keys.create", name=f"Nummer {number}")
    clock.move(minutes=2)
    send()
    run("admins.update", mira, email="mira@elsewhere.example")
    raw = {"name": "Bo", "login": "bo", "role": "auditor", "email": "bo@lantern.example"}
    gate.run(Call("admins.invite", Actor.administrator(mira, "Mira", gate.environment.permits.find("owner")), raw))
    run("admins.invite", name="Eve", login="eve", role="auditor", email="eve@lantern.example")
    send()
    assert receiver.received[receiver.recipients.index("eve@lantern.example")]["Subject"] == "[The Lantern] You are invited"
    ours = {"mira@elsewhere.example", MIRA, "bo@lantern.example"}
    mails = [mail for to, mail in zip(receiver.recipients, receiver.received, strict=True) if to in ours]
    assert {
        "[The Lantern] Sie sind eingeladen",
        "[The Lantern] 20 Alarme und mehr",
        "[The Lantern] E\N{NON-BREAKING HYPHEN}Mails gehen an eine andere Adresse",
    } < {mail["Subject"] for mail in mails}
    english = [line for mail in mails for line in text_of(mail).splitlines() if ENGLISH.search(line.replace("The Lantern", ""))]
    assert english == []


@pytest.mark.either_engine
def test_a_name_adds_no_header_and_hides_nothing(settings: Settings, receiver: MailReceiver, run: Run, clock: Clock) -> None:
    add(run, "Mira", email=MIRA)
    named = replace(settings, community_name="News\r\nBcc: eve@evil.example\u202e")
    other = compose(named, clock=clock)
    with closing(other.store):
        assert Mailer(other, MailServer(named)).work() == 1
    (mail,) = receiver.received
    assert receiver.recipients == [MIRA]
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[News Bcc: eve@evil.example] The terminal made Mira an administrator"


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["می\u200cبینم", "\U0001f469\u200d\U0001f4bb", "❤️"], ids=["Persian", "emoji", "style"])
def test_a_name_is_told_as_it_is(run: Run, receiver: MailReceiver, send: Send, name: str) -> None:
    add(run, "Mira", email=MIRA)
    run("keys.create", name=name)
    assert send() == 1
    (mail,) = receiver.received
    assert f"created the API key {name}." in text_of(mail)


def test_an_outage_loses_nothing_and_what_is_refused_for_good_is_given_up(
    run: Run, receiver: MailReceiver, send: Send, clock: Clock, settings: Settings
) -> None:
    mira = add(run, "Mira", email=MIRA)
    receiver.answers = ["451 Not now", "250 Known", "550 No such user"]
    run("keys.create", name="Plugin")
    assert send() == 0
    waiting = last_mail(run, mira)
    assert waiting["state"] == "waiting"
    assert waiting["error"] == "The server refused the address: 451 Not now"
    assert send() == 0, "not before it is due"
    clock.move(minutes=3)
    assert send() == 1
    run("keys.create", name="Another")
    assert send() == 0
    assert last_mail(run, mira)["state"] == "failed"
    clock.move(days=3)
    assert send() == 0
    assert len(receiver.received) == 1


def test_it_is_given_up_after_about_a_day(run: Run, receiver: MailReceiver, send: Send, clock: Clock) -> None:
    mira = add(run, "Mira", email=MIRA)
    receiver.answers = ["451 Not now"] * 100
    run("keys.create", name="Plugin")
    began = clock.at
    while last_mail(run, mira) is None or last_mail(run, mira)["state"] == "waiting":
        send()
        clock.move(minutes=20)
    assert 100 - len(receiver.answers) == 10
    assert timedelta(hours=24) < clock.at - began < timedelta(hours=36)


def test_a_process_that_ends_before_it_has_recorded_a_mail_leaves_it_to_be_sent_again(
    new_settings: NewSettings, receiver: MailReceiver
) -> None:
    settings = replace(
        new_settings(), smtp_host="127.0.0.1", smtp_port=receiver.port, smtp_tls="off", smtp_from="panel@lantern.example"
    )
    clock = Clock(datetime.now(UTC))
    gate = compose(settings, clock=clock)
    with closing(gate.store):
        raw = {"name": "Mira", "login": "mira", "password": PASSWORD, "email": MIRA}
        owner = Actor("terminal", None, "terminal")
        gate.run(Call("admins.create", owner, raw))
        gate.run(Call("keys.create", owner, {"name": "Plugin"}))
        ended = run_program([sys.executable, PROGRAM, settings.database_url, str(receiver.port)], check=False, capture_output=True)
        assert ended.returncode == -9, ended.stderr.decode()
        mailer = Mailer(gate, MailServer(settings))
        assert mailer.work() == 0, "it may still be on its way"
        clock.move(minutes=5)
        assert (mailer.work(), mailer.work()) == (1, 0)
    first, second = receiver.received
    assert first["Message-ID"] == second["Message-ID"]
    assert "created the API key Plugin." in text_of(second)


def test_a_mail_is_not_sent_again_because_the_database_was_busy_when_it_had_been_sent(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    mira = add(run, "Mira", email=MIRA)
    write, refusals = gate.store.write, [Refused("BUSY", "Not now.")] * 2

    def refuse_at_first(work: Any, *, quiet: bool = False) -> Future[Any]:
        if not receiver.received or not refusals:
            return write(work, quiet=quiet)
        future: Future[Any] = Future()
        future.set_exception(refusals.pop())
        return future

    monkeypatch.setattr(worker, "_WRITE_AGAIN", 0.01)
    monkeypatch.setattr(type(gate.store), "write", staticmethod(refuse_at_first))
    assert send() == 1
    assert (last_mail(run, mira)["state"], refusals) == ("sent", [])
    clock.move(hours=1)
    assert (send(), receiver.recipients) == (0, [MIRA])


def test_many_workers_send_it_once(gate: Gate, settings: Settings, run: Run, receiver: MailReceiver) -> None:
    for number in range(4):
        add(run, f"Admin {number}", email=f"admin{number}@lantern.example")
    run("keys.create", name="Plugin")
    gates = [compose(settings) for _ in range(3)]
    mailers = [Mailer(one, MailServer(settings)) for one in gates]
    for mailer in mailers:
        mailer.start()
    wait_until(lambda: len(receiver.received) >= 4)
    for mailer in mailers:
        mailer.stop()
    for one in gates:
        one.store.close()
    assert sorted(receiver.recipients) == [f"admin{number}@lantern.example" for number in range(4)]


def test_another_address_is_told_to_the_one_before_and_is_an_alarm(run: Run, receiver: MailReceiver, send: Send) -> None:
    mira = add(run, "Mira", email=MIRA)
    run("admins.update", mira, email="eve@evil.example")
    assert send() == 2
    told = dict(zip(receiver.recipients, map(text_of, receiver.received), strict=True))
    assert "This is the last mail to this address" in told[MIRA]
    assert "eve@evil.example" not in told[MIRA]
    assert "changed the address that mail for Mira goes to" in told["eve@evil.example"]


def test_whoever_changes_their_address_again_and_again_sends_little_mail_to_others(
    run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    mira = add(run, "Mira", email=MIRA)
    run("admins.update", mira, mailedAlarms=[])
    for number in range(30):
        run("admins.update", mira, email=f"somebody{number}@elsewhere.example")
    assert send() == 5
    assert (receiver.recipients[0], len(set(receiver.recipients))) == (MIRA, 5)
    clock.move(days=1, minutes=1)
    run("admins.update", mira, email=MIRA)
    assert (send(), receiver.recipients[5:]) == (1, ["somebody29@elsewhere.example"])


def test_whoever_chooses_fewer_alarms_is_told_so(gate: Gate, run: Run, receiver: MailReceiver, send: Send, clock: Clock) -> None:
    """An impostor would do so before anything else."""
    mira = add(run, "Mira", email=MIRA)
    set_view(gate, mira, language="de").result()
    me = Actor.administrator(mira, "Mira", None)
    for names in (["*"], [], ["new-key"]):
        gate.run(Call("admins.update", me, {"mailedAlarms": names}, mira))
    assert (send(), receiver.recipients) == (1, [MIRA])
    (mail,) = receiver.received
    assert mail["Subject"] == "[The Lantern] Sie haben weniger Alarme gewählt"
    assert "Falls Sie das nicht waren" in text_of(mail)
    run("keys.create", name="Plugin")
    clock.move(minutes=2)
    assert send() == 1
    run("admins.update", mira, mailedAlarms=[])
    assert send() == 0, "it was done for her at the terminal"


def test_an_address_that_is_removed_is_told_that_no_mail_goes_anywhere(run: Run, receiver: MailReceiver, send: Send) -> None:
    mira = add(run, "Mira", email=MIRA)
    run("admins.update", mira, email=None)
    assert send() == 1
    (mail,) = receiver.received
    assert (receiver.recipients, "another address" in mail.as_string()) == ([MIRA], False)
    assert mail["Subject"] == "[The Lantern] No more mail goes to this address"
    assert "no mail is sent to Mira, an administrator of The Lantern, any more." in " ".join(text_of(mail).split())


def test_whoever_is_disabled_gets_nothing_and_who_adds_an_address_nothing_old(run: Run, receiver: MailReceiver, send: Send) -> None:
    mira, ada = add(run, "Mira", email=MIRA), add(run, "Ada")
    run("keys.create", name="Plugin")
    run("admins.update", ada, email="ada@lantern.example")
    run("admins.disable", mira)
    assert send() == 0
    assert receiver.received == []


@pytest.mark.parametrize("how", ["accept_invitation", "set_password", "enable"])
def test_whoever_is_let_in_gets_nothing_of_the_time_before(
    run: Run, receiver: MailReceiver, send: Send, clock: Clock, how: str
) -> None:
    invited = run("admins.invite", name="Mira", login="mira", email=MIRA, role="key-manager", byMail=False)
    mira, raw = invited["id"], {"password": PASSWORD}
    if how == "accept_invitation":
        raw["link"] = invited["link"]
    elif how == "enable":
        run("admins.set_password", mira, **raw)
        run("admins.disable", mira)
        raw = {}
    run("keys.create", name="Of before")
    assert send() == 0
    run(f"admins.{how}", mira, **raw)
    send()
    clock.move(minutes=2)
    run("keys.create", name="Of now")
    assert send() == 1
    told = "".join(map(text_of, receiver.received))
    assert ("Of now" in told, "Of before" in told) == (True, False)


@pytest.mark.either_engine
def test_what_is_no_address_is_refused(run: Run) -> None:
    for address in (
        "mira",
        "a@b@c",
        "a b@c.example",
        "a@b.example\nBcc: c@d.example",
        "a@b.example, c@d.example",
        "x" * 250 + "@b.example",
        "=?utf-8?q?mira?=@b.example",  # which the library would decode
    ):
        with pytest.raises(Refused, match="email must be one address"):
            run("admins.invite", name="Ada", login="ada", role="auditor", email=address)


def test_notices_are_mailed_after_the_clock_was_ahead(run: Run, receiver: MailReceiver, send: Send, clock: Clock) -> None:
    mira = run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, email="mira0@lantern.example")["id"]
    clock.move(days=30)
    for number in range(1, 6):
        run("admins.update", mira, email=f"mira{number}@lantern.example")
    clock.move(days=-30)
    send()
    receiver.received.clear()
    for number in range(6, 13):
        run("admins.update", mira, email=f"mira{number}@lantern.example")
        clock.move(days=1)
    send()
    assert len([one for one in receiver.received if "address" in one["Subject"]]) == 7
