"""The outbox of mail: alarms become mail, and a mail that is due is written, handed to the sender, and settled.

A process claims a mail before it sends anything: it counts the attempt, and records when the next one is due. So a mail is never
lost. If a process ends after sending a mail and before recording that, the mail is sent again under the same Message-ID, so that
servers can drop it; but an invitation, which has a new link, under another one.
"""

import random
from collections.abc import Collection
from datetime import timedelta
from hashlib import blake2b
from typing import Final, NamedTuple

from trellis.core.admins import ALL, is_open, make_link
from trellis.core.fields import shift_timestamp
from trellis.core.mail.text import MOST, MailText, write_alarms, write_changed_address, write_fewer_alarms, write_invitation
from trellis.core.operation import Environment
from trellis.sentences import say
from trellis.store import alarms, events, mail
from trellis.store.alarms import Alarm
from trellis.store.engine import Transaction
from trellis.store.mail import Mail, Recipient, reasons
from trellis.timestamps import CLOCKS_DIFFER

_MINUTES: Final = (2, 5, 15, 30, 60, 120, 240, 480, 720, 720)  # from an attempt to the next: ten attempts in about 29 hours
_JITTER: Final = 0.1
_APART: Final = timedelta(minutes=1)  # between two mails with alarms to one administrator


class Draft(NamedTuple):
    """A mail to be sent, with the row that counts the attempt. `identity` is the same for each attempt with the same text.

    `language` is the reader's, or for an invitation that of whoever invites if the reader has none; "" if none was chosen.
    """

    mail: Mail
    to: str
    text: MailText
    language: str
    identity: str


def has_work(tx: Transaction, environment: Environment, now: str) -> bool:
    """Return whether a mail is due, or alarms have not been processed yet for everybody who has an address."""
    return bool(mail.list_behind(tx)) or _find_due(tx, environment, now) is not None


def _find_due(tx: Transaction, environment: Environment, now: str) -> Mail | None:
    """Return the mail that is due. Invitations wait for a process that knows the address of the service, which their link needs."""
    return mail.find_due(tx, now, shift_timestamp(now, CLOCKS_DIFFER), invitations=bool(environment.public_url))


def fill(tx: Transaction, environment: Environment, now: str) -> int:
    """Make mail of the alarms since the last mail, for each administrator with an address; return the number of mails.

    At most one such mail waits for each of them, and the next follows a minute later with all alarms since: a thousand alarms make
    only a few mails.
    """
    made = 0
    for reader, newest in mail.list_behind(tx):
        if mail.is_alarm_mail_pending(tx, reader.id, shift_timestamp(now, -_APART), now):
            continue
        if _choose(tx, environment, reader, (reader.alarms_mailed, newest), 1):
            mail.insert(tx, "alarms", reader.id, now, span=(reader.alarms_mailed, newest))
            made += 1
        mail.advance(tx, reader.id, newest)
    return made


def _choose(tx: Transaction, environment: Environment, reader: Recipient, span: tuple[int, int], limit: int) -> list[Alarm]:
    """Return at most so many alarms after one event, up to another, that somebody may see and wants to be mailed, newest first."""
    wanted = reader.alarms.split(",")
    names = None if ALL in wanted else wanted
    return alarms.read_newest(tx, _find_resources(environment, reader), reader.id, limit, (span[0], span[1] + 1), names=names)


def _find_resources(environment: Environment, reader: Recipient) -> Collection[str] | None:
    """Return the resources that somebody may read; None for all."""
    permit = environment.permits.find(reader.role, reader.kinds)
    return None if permit is None else permit.resources


def begin_attempt(tx: Transaction, environment: Environment, now: str) -> Draft | None:
    """Begin an attempt to send the mail that is due; None if there is none.

    Mail that has nothing left to report, or nobody to report it to, is settled as failed on the way.
    """
    while (due := _find_due(tx, environment, now)) is not None:
        if due.attempts >= len(_MINUTES):  # a process ended during the last attempt: the mail, and the link in it, may have arrived
            mail.settle(tx, due, "failed", say(reasons.GIVEN_UP))
            continue
        wait = timedelta(minutes=_MINUTES[due.attempts] * random.uniform(1, 1 + _JITTER))  # noqa: S311
        mail.claim(tx, due, now, shift_timestamp(now, wait))
        due.attempts += 1
        reader = mail.find_recipient(tx, due.admin_id)
        to = due.recipient or (reader.email if reader is not None else None)
        if reader is not None and to and (text := _write(tx, environment, due, reader, now)) is not None:
            return Draft(due, to, text, _find_language(tx, due, reader), _identify(due, to))
        mail.settle(tx, due, "failed", due.error or say(reasons.NOTHING_TO_TELL))
    return None


def _identify(due: Mail, to: str) -> str:
    attempt = f" {due.attempts}" if due.kind == "invitation" else ""
    return blake2b(f"{due.id} {due.created_at} {to}{attempt}".encode(), digest_size=16).hexdigest()


def _write(tx: Transaction, environment: Environment, due: Mail, reader: Recipient, now: str) -> MailText | None:
    """Write the text of a mail as of now; None if there is nothing left to report."""
    if due.kind == "changed-address":
        return write_changed_address(environment, reader.name, is_removed=reader.email is None)
    if due.kind == "fewer-alarms":
        return write_fewer_alarms(environment, reader.name)
    if reader.is_disabled:
        return None
    if due.kind == "invitation":
        if reader.has_password or not is_open(tx, reader.id, now):
            return None
        # Each attempt makes a new link, since the previous one is not stored: only the link in the newest mail is valid.
        return write_invitation(environment, reader.name, *make_link(tx, reader.id, now))
    chosen = _choose(tx, environment, reader, (due.first or 0, due.last or 0), MOST + 1)
    told = {event.seq: event for event in events.find_many(tx, [alarm.event for alarm in chosen[:MOST]])}
    resources = _find_resources(environment, reader)
    return write_alarms(environment, chosen[:MOST], told, resources, more=len(chosen) > MOST) if told else None


def _find_language(tx: Transaction, due: Mail, reader: Recipient) -> str:
    """Return the language that the reader, or else whoever invites them, has chosen for the panel; "" if none was chosen."""
    if reader.language or due.kind != "invitation":
        return reader.language
    newest = events.read_page(tx, {"resource": "admins", "resource_id": reader.id}, 1, None, newest_first=True)
    inviter = mail.find_recipient(tx, newest[0].actor["id"]) if newest and newest[0].actor["type"] == "admin" else None
    return inviter.language if inviter is not None else ""


def settle(tx: Transaction, taken: Mail, error: str | None, *, is_final: bool = False) -> None:
    """Record the outcome of an attempt: the mail was sent, or will be tried again, or was given up."""
    if error is None:
        mail.settle(tx, taken, "sent")
    else:
        mail.settle(tx, taken, "failed" if is_final or taken.attempts >= len(_MINUTES) else "waiting", error)
