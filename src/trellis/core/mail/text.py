"""What a mail says: a subject of one line, and plain text without anything secret but the link of an invitation."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from trellis.core.alarms import tell_outside
from trellis.core.operation import Environment
from trellis.store.alarms import Alarm
from trellis.store.events import Event

PANEL: Final = "/admin"
MOST: Final = 20  # alarms that one mail tells
_LONGEST_SUBJECT: Final = 150
_INVISIBLE: Final = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_LINE_ENDS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


class Text(NamedTuple):
    """A mail's subject and what it says."""

    subject: str
    body: str


def _one_line(text: str) -> str:
    """Return a text without what could end a line, or hide or turn round a part of it."""
    return _LINE_ENDS.sub(" ", _INVISIBLE.sub("", text)).strip()


def _subject(environment: Environment, text: str) -> str:
    whole = _one_line(f"[{environment.community_name}] {text}")
    return whole if len(whole) <= _LONGEST_SUBJECT else f"{whole[: _LONGEST_SUBJECT - 1]}…"


def write_alarms(environment: Environment, alarms: Sequence[Alarm], events: dict[int, Event], *, more: bool) -> Text:
    """Tell alarms, the newest first. `more` says that there are others."""
    told = [(alarm, events[alarm.event]) for alarm in alarms if alarm.event in events]
    sentences = [_one_line(tell_outside(alarm.name, event)) for alarm, event in told]
    subject = sentences[0].rstrip(".") if len(sentences) == 1 else f"{len(sentences)} alarms{' and more' if more else ''}"
    parts = []
    for sentence, (alarm, _) in zip(sentences, told, strict=True):
        link = _link(environment, f"/events/{alarm.event}")
        parts.append("\n".join(filter(None, (sentence, alarm.at, link))))
    if more:
        parts.append("There are more, in the panel under Alarms.")
    why = "You get this because you are an administrator there."
    where = f"All alarms: {_link(environment, '/alarms')}\nWhich of them are mailed to you: {_link(environment, '/account')}"
    parts.append(f"-- \n{_name(environment)}\n{why}" + (f"\n{where}" if environment.public_url else " The panel has more."))
    return Text(_subject(environment, subject), "\n\n".join(parts) + "\n")


def write_invitation(environment: Environment, name: str, link: str, until: str) -> Text:
    """Invite somebody."""
    body = (
        f"Hello {_one_line(name)},\n\nyou are to be an administrator of {_name(environment)}. Choose your password here:\n\n"
        f"{_link(environment, f'/invitation/{link}')}\n\n"
        f"The link holds once, until {until}. Whoever has it can choose the password: pass it on to nobody. If you did not expect "
        "this, do nothing.\n"
    )
    return Text(_subject(environment, "You are invited"), body)


def write_changed_address(environment: Environment, name: str) -> Text:
    """Tell whoever read mail for somebody until now that it goes elsewhere."""
    body = (
        f"Mail for {_one_line(name)}, an administrator of {_name(environment)}, goes to another address from now on. This is the "
        "last one to this address.\n\nIf that was not you, tell another administrator, and change your password.\n"
    )
    account = _link(environment, "/account")
    return Text(_subject(environment, "Mail goes to another address"), f"{body}\n{account}\n" if account else body)


def write_test(environment: Environment) -> Text:
    """Tell that mail can be sent."""
    body = f"This is a test from {_name(environment)}. Nothing has happened: somebody wants to know whether mail arrives.\n"
    return Text(_subject(environment, "A test"), body)


def _name(environment: Environment) -> str:
    return _one_line(environment.community_name)


def _link(environment: Environment, path: str) -> str:
    return f"{environment.public_url}{PANEL}{path}" if environment.public_url else ""
