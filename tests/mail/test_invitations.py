"""Invitations by mail: the link that holds, whatever happens to the mail, and where it goes."""

from dataclasses import replace
from email.message import EmailMessage
from typing import Final

import pytest

from tests.fixture_types import Clock, Run
from tests.mail.conftest import Send
from tests.mail_receiver import MailReceiver, text_of
from trellis.compose import compose
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.mail import Mailer, MailServer
from trellis.settings import Settings

PASSWORD: Final = "correct horse battery"


class Interrupted(MailServer):
    """The server, after whose answer nothing is recorded."""

    def send(self, to: str, subject: str, body: str, identity: str) -> None:
        super().send(to, subject, body, identity)
        raise RuntimeError("interrupted")


def accept(gate: Gate, invited: int, mail: EmailMessage) -> None:
    """Accept an invitation with the link in a mail."""
    link = text_of(mail).partition("/admin/invitation/")[2].split()[0]
    ada = Actor.administrator(invited, "Ada Berg", gate.environment.permits.find("auditor"))
    gate.run(Call("admins.accept_invitation", ada, {"password": PASSWORD, "link": link}, invited))


def test_an_invitation_is_mailed_and_no_database_has_its_link(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ada@lantern.example")
    assert (invited["mailedTo"], "link" in invited) == ("ada@lantern.example", False)
    receiver.answers = ["451 Not now"]
    assert send() == 0
    clock.move(minutes=3)
    assert (send(), receiver.recipients) == (1, ["ada@lantern.example"])
    accept(gate, invited["id"], receiver.received[0])
    assert run("admins.get", invited["id"])["isInvited"] is False


def test_an_invitation_that_arrives_twice_with_two_links_is_two_mails(
    gate: Gate, settings: Settings, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    """A server that has seen a Message-ID may drop the second mail with it, which has the only valid link."""
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ada@lantern.example")["id"]
    with pytest.raises(RuntimeError, match="interrupted"):
        Mailer(gate, Interrupted(settings)).work()
    clock.move(minutes=5)
    assert send() == 1
    first, second = receiver.received
    assert first["Message-ID"] != second["Message-ID"]
    accept(gate, invited, second)


def test_an_invitation_is_mailed_at_once_after_the_clock_was_ahead(
    run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    clock.move(days=90)
    run("keys.create", name="Plugin")
    clock.move(days=-90)
    run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ada@lantern.example")
    assert (send(), receiver.recipients) == (1, ["ada@lantern.example"])


def test_a_corrected_address_gets_another_link_and_the_one_before_is_worth_nothing(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send
) -> None:
    """Whoever reads mail to the mistyped address must not become an administrator."""
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ade@lantern.example")["id"]
    assert send() == 1
    run("admins.update", invited, email="ada@lantern.example")
    with pytest.raises(Refused, match="Ask for a new one"):
        accept(gate, invited, receiver.received[0])
    assert (send(), receiver.recipients) == (1, ["ade@lantern.example", "ada@lantern.example"])
    accept(gate, invited, receiver.received[1])


def test_a_link_is_worth_nothing_after_its_address_was_corrected_while_the_clock_was_ahead(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ade@lantern.example")["id"]
    assert send() == 1
    clock.move(days=4)
    run("admins.update", invited, email="ada@lantern.example")
    clock.move(days=-4)
    with pytest.raises(Refused, match="Ask for a new one"):
        accept(gate, invited, receiver.received[0])


def test_an_address_that_is_corrected_before_the_mail_is_sent_gets_it(run: Run, receiver: MailReceiver, send: Send) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ade@lantern.example")["id"]
    run("admins.update", invited, email="ada@lantern.example")
    assert (send(), receiver.recipients) == (1, ["ada@lantern.example"])


def test_a_link_does_not_outlive_the_address_that_it_was_mailed_to(
    gate: Gate, run: Run, receiver: MailReceiver, send: Send
) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ade@lantern.example")["id"]
    assert send() == 1
    run("admins.update", invited, email=None)
    assert run("admins.get", invited)["invitedUntil"] is None
    with pytest.raises(Refused, match="Ask for a new one"):
        accept(gate, invited, receiver.received[0])
    shown = run("admins.renew_invitation", invited)
    run("admins.update", invited, email="ada@lantern.example")
    assert run("admins.get", invited)["invitedUntil"] == shown["invitedUntil"], "the link that was shown still works"
    assert send() == 0


def test_a_process_that_does_not_know_where_the_service_is_leaves_invitations_to_others(
    gate: Gate, settings: Settings, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    elsewhere = replace(settings, public_url=None)
    other = compose(elsewhere, clock=clock)
    mailer = Mailer(other, MailServer(elsewhere))
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ada@lantern.example")
    assert (mailer.work(), receiver.received) == (0, [])
    other.store.close()
    assert send() == 1
    accept(gate, invited["id"], receiver.received[0])


def test_the_link_of_the_last_attempt_stays_valid_if_the_process_ended_before_it_has_recorded_the_mail(
    gate: Gate, settings: Settings, run: Run, receiver: MailReceiver, send: Send, clock: Clock
) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor", email="ada@lantern.example")["id"]
    receiver.answers = ["451 Not now"] * 9
    for _ in range(9):
        assert send() == 0
        clock.move(hours=14)
    with pytest.raises(RuntimeError, match="interrupted"):
        Mailer(gate, Interrupted(settings)).work()
    clock.move(hours=14)
    assert send() == 0
    assert run("admins.get", invited)["lastMail"]["state"] == "failed"
    accept(gate, invited, receiver.received[0])
    assert run("admins.get", invited)["isInvited"] is False


def test_an_invitation_is_shown_where_it_cannot_be_mailed_or_is_not_to_be(run: Run, send: Send, receiver: MailReceiver) -> None:
    assert run("admins.invite", name="Ada", login="ada", role="auditor")["link"]
    bob = run("admins.invite", name="Bob", login="bob", role="auditor", email="bob@lantern.example")["id"]
    assert run("admins.renew_invitation", bob, byMail=False)["link"], "and what waited is withdrawn"
    assert send() == 0
    run("admins.renew_invitation", bob)
    run("admins.withdraw_invitation", bob)
    assert send() == 0
    assert receiver.received == []
