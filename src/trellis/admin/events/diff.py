"""The changes of an event: each member that differs, long texts word by word, permissions by the names of groups."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import groupby, takewhile
from operator import itemgetter
from typing import Any, Final

from trellis.core.alarms import ALARMS
from trellis.core.fields import EVERYONE
from trellis.core.keys import list_bounds
from trellis.core.nodes import NodeKind
from trellis.core.roles import ROLES
from trellis.sentences import join, say

_MAX_SHORT: Final = 60  # characters; longer texts are compared word by word
_MAX_WORDS: Final = 3000  # texts with more words take too long to compare
_MAX_STEPS: Final = 1_000_000  # in all comparisons on a page: a tenth of a second
_MAX_SHOWN: Final = 2000  # characters shown of a text that is not compared
_WORD: Final = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")  # with the spaces after it
_PIECE: Final = re.compile(r"\w+|[^\w\s]|\s+")  # without them
_CONTEXT: Final = 60  # characters of unchanged text shown around a change
_HIDDEN: Final = frozenset({"id", "url", "createdAt", "updatedAt", "state", "builtIn", "lastUsedAt", "public", "etag"})
_BOUNDS: Final = "bounds"  # of a key: as recorded, or already as a list of texts

_LABELS: Final = {  # of members that no operation takes as a field
    "pausedAt": say("Paused at"),
    "pausedBecause": say("Paused because"),
    "revokedAt": say("Revoked at"),
    "revokedBecause": say("Revoked because"),
    "expiresAt": say("Expires at"),
    "isInvited": say("Is invited"),
    "address": say("Address"),
    "agent": say("Agent"),
    "attempts": say("Attempts"),
    "newBrowser": say("New browser"),
    "confirmedWith": say("Confirmed with"),
    "about": say("About"),
    "proposer": say("Proposer"),
    "target": say("Target"),
    "counts": say("Counts"),
    "closedAt": say("Closed at"),
    "closedBy": say("Closed by"),
    "closedBecause": say("Closed because"),
    "event": say("Event"),
    "usedAt": say("Used at"),
    "task": say("Task"),
}

_WORDS: Final[Mapping[str, Mapping[str, str]]] = {  # for values that are names or signs, by member
    "mailedAlarms": {"*": say("Every alarm"), **{rule.name: say(rule.label) for rule in ALARMS}},
    "events": {"*": say("Every event")},
    "role": {name: say(role.title) for name, role in ROLES.items()},
}

Part = tuple[str, str]  # "same", "removed" or "added", and the text


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The change of one member: the `parts` of a text, what was `removed` from and `added` to a list, or `rows` of permissions.

    A member with none of these is secret: it is only known to have changed.
    """

    label: str
    parts: tuple[Part, ...] = ()
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    rows: tuple["MemberChange", ...] = ()

    @property
    def secret(self) -> bool:
        """Whether the value of the member is not recorded."""
        return not (self.parts or self.removed or self.added or self.rows)


@dataclass(slots=True)
class Effort:
    """How many steps comparing the texts of a page word by word may still take. Once they are used up, texts are shown whole.

    Without this limit, the steps for a word that occurs often would grow with the cube of the number of its occurrences.
    """

    left: int = _MAX_STEPS


def event_changes(
    event: Mapping[str, Any], kinds: Iterable[NodeKind], groups: Mapping[int, str], effort: Effort | None = None
) -> tuple[MemberChange, ...]:
    """Return what an event changed, in the order of the record. `groups` are the names of groups by id."""
    kinds = tuple(kinds)
    kind, words = _find_kind(event, kinds), {**_WORDS, "kinds": {one.name: one.title for one in kinds}}
    return compare_states(shown_members(event), event["before"] or {}, event["after"] or {}, kind, groups, effort, words)


def changed_labels(event: Mapping[str, Any], kinds: Iterable[NodeKind]) -> list[str]:
    """Return the labels of the members that an event changed, as forms have them; none if it created or deleted the record."""
    if not (event["before"] and event["after"]):
        return []
    titles = _titles(_find_kind(event, kinds))
    return [titles.get(name, _label(name)) for name in shown_members(event)]


def compare_states(
    names: Iterable[str],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    kind: NodeKind | None,
    groups: Mapping[int, str],
    effort: Effort | None = None,
    words: Mapping[str, Mapping[str, str]] = _WORDS,
) -> tuple[MemberChange, ...]:
    """Return how two states of a record differ in some members. A member that neither has is secret.

    A page that shows several records passes one `effort` for all.
    """
    effort = effort or Effort()
    group_fields = {f.name for f in kind.group_fields} if kind else set()
    titles = _titles(kind)
    found: list[MemberChange] = []
    for name in names:
        label, old, new = titles.get(name, _label(name)), before.get(name), after.get(name)
        if name not in before and name not in after:
            found.append(MemberChange(label))
            continue
        is_of_groups = name in group_fields
        if is_of_groups:
            change = _diff_groups(label, old, new, groups)
        else:
            change = _change(label, name, old, new, groups, effort, words.get(name, {}))
        found += [] if change.secret else [change]
    return tuple(found)


def shown_members(event: Mapping[str, Any]) -> list[str]:
    """Return the members to show of an event: those that it changed, or those with a value in a record it created or deleted."""
    before, after = event["before"], event["after"]
    if before and after:
        moved = "parentId" in event["changed"]
        return [name for name in event["changed"] if name not in _HIDDEN and (name != "path" or moved)]
    record = after or before or {}
    return [name for name, value in record.items() if name not in _HIDDEN | {"path"} and value not in (None, "", [], {}, False)]


def _change(
    label: str, name: str, old: Any, new: Any, groups: Mapping[int, str], effort: Effort, words: Mapping[str, str]
) -> MemberChange:
    if name == "permissions":
        old, new = old or {}, new or {}
        options = [option for option in {**old, **new} if old.get(option, []) != new.get(option, [])]
        rows = (_diff_groups(say(option.capitalize()), old.get(option), new.get(option), groups) for option in options)
        return MemberChange(label, rows=tuple(rows))
    if name == _BOUNDS and not isinstance(old, list) and not isinstance(new, list):
        old, new = list_bounds(old or {}), list_bounds(new or {})
    if isinstance(old, list) or isinstance(new, list):
        return _diff_lists(label, [_format(one, words) for one in old or ()], [_format(one, words) for one in new or ()])
    return MemberChange(label, parts=diff_texts(_format(old, words), _format(new, words), effort))


def _diff_groups(label: str, old: Any, new: Any, groups: Mapping[int, str]) -> MemberChange:
    return _diff_lists(label, _group_names(old, groups), _group_names(new, groups))


def _diff_lists(label: str, old: Sequence[str], new: Sequence[str]) -> MemberChange:
    before, after = set(old), set(new)
    removed, added = tuple(one for one in old if one not in after), tuple(one for one in new if one not in before)
    if not removed and not added:  # the order has changed, or how often something is in it, or groups of the same name
        removed, added = ((join(one, ", "),) if one else () for one in (old, new))
    return MemberChange(label, removed=removed, added=added)


def _group_names(who: Any, groups: Mapping[int, str]) -> list[str]:
    if who == EVERYONE:
        return [say("every group")]
    return [groups.get(number) or say("group {number}, since deleted", number=number) for number in who or ()]


class _TooLongError(Exception):
    """A comparison would take too long."""


class _Comparison(SequenceMatcher[str]):
    """A comparison that raises _TooLongError before it takes too long."""

    def __init__(self, old: list[str], new: list[str], effort: Effort) -> None:
        super().__init__(None, old, new, autojunk=False)
        self._words = old
        self._often = Counter(new)
        self._effort = effort

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self._effort.left -= sum(1 + self._often[word] for word in self._words[alo:ahi])
        if self._effort.left < 0:
            raise _TooLongError
        return super().find_longest_match(alo, ahi, blo, bhi)


def diff_texts(old: str, new: str, effort: Effort) -> tuple[Part, ...]:
    """Compare two texts: short ones as a whole, long ones word by word."""
    if old == new:
        return (("same", old),)
    words, others = _WORD.findall(old), _WORD.findall(new)
    short = max(len(old), len(new)) <= _MAX_SHORT and "\n" not in old + new
    whole = tuple((tone, _shorten(text)) for tone, text in (("removed", old), ("added", new)) if text)
    if short or not old or not new or max(len(words), len(others)) > _MAX_WORDS:
        return whole
    try:
        steps = _Comparison(words, others, effort).get_opcodes()
    except _TooLongError:
        return whole
    narrowed = [part for _, a, b, c, d in steps for part in _narrow("".join(words[a:b]), "".join(others[c:d]))]
    joined = [(tone, "".join(text for _, text in texts)) for tone, texts in groupby(narrowed, itemgetter(0))]
    last = len(joined) - 1
    return tuple(
        (tone, _shorten_middle(text, first=n == 0, last=n == last) if tone == "same" else text)
        for n, (tone, text) in enumerate(joined)
    )


def _narrow(old: str, new: str) -> list[Part]:
    """Split a replaced text into parts, so that what both texts begin or end with, mostly a space, counts as the same."""
    if old == new:
        return [("same", old)]
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    head = sum(1 for _ in takewhile(_are_same, zip(before, after, strict=False)))
    before, after, begin = before[head:], after[head:], "".join(before[:head])
    tail = sum(1 for _ in takewhile(_are_same, zip(reversed(before), reversed(after), strict=False)))
    removed, added, end = "".join(before[: len(before) - tail]), "".join(after[: len(after) - tail]), before[len(before) - tail :]
    parts = (("same", begin), ("removed", removed), ("added", added), ("same", "".join(end)))
    return [(tone, text) for tone, text in parts if text]


def _are_same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else say("{text} … ({length:,} characters)", text=text[:_MAX_SHOWN], length=len(text))


def _shorten_middle(text: str, *, first: bool, last: bool) -> str:
    """Cut out the middle of a long unchanged text."""
    if len(text) <= 3 * _CONTEXT:
        return text
    return ("" if first else text[:_CONTEXT]) + " … " + ("" if last else text[-_CONTEXT:])


def _format(value: Any, words: Mapping[str, str]) -> str:
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, Mapping):  # somebody who has made something
        return say("The terminal") if value.get("type") == "terminal" else str(value.get("name", ""))
    if isinstance(value, str):
        return words.get(value, value)  # a Sentence stays one, so that it can be translated
    return "" if value is None else str(value)


def _find_kind(event: Mapping[str, Any], kinds: Iterable[NodeKind]) -> NodeKind | None:
    return next((kind for kind in kinds if kind.name == event["resource"]), None)


def _titles(kind: NodeKind | None) -> dict[str, str]:
    return {f.name: say(f.label) for f in (*kind.fields, kind.external_id_field)} if kind else {}


def _label(name: str) -> str:
    return _LABELS.get(name) or say(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").capitalize())
