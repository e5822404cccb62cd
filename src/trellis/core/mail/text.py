"""The texts of mails: a subject of one line, and plain text that contains nothing secret except the link of an invitation.

Both are sentences (`trellis.sentences`), which the sender of the mail translates into the reader's language.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from trellis.core.alarms import tell_outside
from trellis.core.operation import Environment
from trellis.invisible import DIRECTIONS, remove_invisible
from trellis.sentences import Sentence, adapt, join, mark, say
from trellis.store.alarms import Alarm
from trellis.store.events import Event

PANEL: Final = "/admin"
MOST: Final = 20  # alarms that one mail lists
_LONGEST_SUBJECT: Final = 150
_LINE_ENDS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


class MailText(NamedTuple):
    """The subject and the body of a mail."""

    subject: Sentence
    body: Sentence


def _one_line(text: str) -> str:
    """Return a text without characters that could end the line, or hide or reverse a part of it."""
    return _LINE_ENDS.sub(" ", remove_invisible(DIRECTIONS.sub("", text))).strip()


def _subject(environment: Environment, sentence: str) -> Sentence:
    def cut(said: str, _: object) -> str:
        whole = _one_line(f"[{environment.community_name}] {said.rstrip('.')}")
        return whole if len(whole) <= _LONGEST_SUBJECT else f"{whole[: _LONGEST_SUBJECT - 1]}…"

    return adapt(sentence, cut)


def write_alarms(
    environment: Environment, alarms: Sequence[Alarm], events: dict[int, Event], resources: Collection[str] | None, *, more: bool
) -> MailText:
    """Write a mail about alarms, the newest first, with links to events of the `resources` that its reader may read (None: all).

    `more`: there are others that the mail does not list.
    """
    reported = [(alarm, events[alarm.event]) for alarm in alarms if alarm.event in events]
    sentences = [adapt(tell_outside(alarm.name, event), lambda said, _: _one_line(said)) for alarm, event in reported]
    parts: list[str] = []
    for sentence, (alarm, _) in zip(sentences, reported, strict=True):
        may_open = resources is None or alarm.resource in resources
        link = _link(environment, f"/events/{alarm.event}") if may_open else ""
        parts.append(join(filter(None, (sentence, _when(alarm.at), link)), "\n"))
    if more:
        parts.append(say("There are more in the panel, under Alarms."))
    parts.append(_end(environment))
    return MailText(_subject(environment, _summarize(sentences, more=more)), _body(*parts))


def _summarize(sentences: Sequence[str], *, more: bool) -> str:
    if len(sentences) == 1:
        return sentences[0]
    return say("{count} alarms and more", count=len(sentences)) if more else say("{count} alarms", count=len(sentences))


def _end(environment: Environment) -> str:
    """Return the end of a mail about alarms: why the reader gets it, and where to find more."""
    lines = [f"-- \n{_name(environment)}", say("You receive this mail because you are an administrator there.")]
    if environment.public_url:
        lines.append(say("All alarms: {link}", link=_link(environment, "/alarms")))
        lines.append(say("Choose which alarms are mailed to you: {link}", link=_link(environment, "/account")))
    else:
        lines.append(say("The panel shows more."))
    return join(lines, "\n")


def write_invitation(environment: Environment, name: str, link: str, until: str) -> MailText:
    """Write a mail that invites somebody."""
    body = _body(
        say("Hello {name},", name=_one_line(name)),
        say(
            "you have been invited to become an administrator of {community}. Choose your password here:",
            community=_name(environment),
        ),
        _link(environment, f"/invitation/{link}"),
        say(
            "The link works once and expires at {until}. Anyone who has it can choose the password, so do not pass it on. If you "
            "did not expect this mail, ignore it.",
            until=_when(until),
        ),
    )
    return MailText(_subject(environment, say("You are invited")), body)


_ELSEWHERE: Final = mark(
    "From now on, mail for {name}, an administrator of {community}, goes to another address. This is the last mail to this address."
)
_NOWHERE: Final = mark(
    "From now on, no mail is sent to {name}, an administrator of {community}, any more. This is the last mail to this address."
)

_FEWER: Final = mark("From now on, fewer alarms are mailed to {name}, an administrator of {community}.")


def write_changed_address(environment: Environment, name: str, *, is_removed: bool) -> MailText:
    """Write a mail to the previous address of somebody: their mail now goes to another address, or to none."""
    subject = say("No more mail goes to this address") if is_removed else say("Mail goes to another address")
    return _write_notice(environment, subject, _NOWHERE if is_removed else _ELSEWHERE, name)


def write_fewer_alarms(environment: Environment, name: str) -> MailText:
    """Write a mail to somebody who has chosen fewer alarms for their address."""
    return _write_notice(environment, say("You have chosen fewer alarms"), _FEWER, name)


def _write_notice(environment: Environment, subject: str, change: str, name: str) -> MailText:
    told = say(change, name=_one_line(name), community=_name(environment))
    warning = say("If that was not you, tell another administrator, and change your password.")
    return MailText(_subject(environment, subject), _body(told, warning, _link(environment, "/account")))


def write_test(environment: Environment) -> MailText:
    """Write a test mail."""
    test = say(
        "This is a test from {community}. Nothing has happened: somebody is checking whether mail arrives.",
        community=_name(environment),
    )
    return MailText(_subject(environment, say("Test mail")), _body(test))


def _body(*parts: str) -> Sentence:
    return adapt(join(filter(None, parts), "\n\n"), lambda said, _: f"{said}\n")


def _when(timestamp: str) -> str:
    """Return a timestamp as people read it in any language: `2026-11-27 04:02 UTC`."""
    return f"{timestamp[:10]} {timestamp[11:16]} UTC"


def _name(environment: Environment) -> str:
    return _one_line(environment.community_name)


def _link(environment: Environment, path: str) -> str:
    return f"{environment.public_url}{PANEL}{path}" if environment.public_url else ""
