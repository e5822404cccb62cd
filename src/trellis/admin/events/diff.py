"""What an event has changed, for a reader: each member that differs, long texts word by word, permissions by names of groups."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

from trellis.core.fields import EVERYONE
from trellis.core.nodes import NodeKind

_LONG: Final = 60  # characters from which on a text is compared word by word
_MOST_WORDS: Final = 3000  # beyond, comparing takes too long
_MOST: Final = 2000  # characters that are shown of a text that is not compared
_AROUND: Final = 60  # characters of an unchanged stretch that are shown beside a change
_UNTOLD: Final = frozenset({"id", "url", "createdAt", "updatedAt", "state", "builtIn", "lastUsedAt", "public"})

Part = tuple[str, str]  # same, gone or new, and the text


@dataclass(frozen=True, slots=True)
class Change:
    """One member. Which is set says how it is drawn: `parts` of a text, `gone` and `new` of a list, `rows` of permissions.

    Without any of them the member is secret, and only known to have changed.
    """

    label: str
    parts: tuple[Part, ...] = ()
    gone: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    rows: tuple["Change", ...] = ()

    @property
    def secret(self) -> bool:
        """Whether nothing is kept of its value."""
        return not (self.parts or self.gone or self.new or self.rows)


def changes(event: Mapping[str, Any], kinds: Iterable[NodeKind], groups: Mapping[int, str]) -> tuple[Change, ...]:
    """Give what an event has changed, in the order of the record. `groups` are the names of groups by id."""
    kind = next((kind for kind in kinds if kind.name == event["resource"]), None)
    return contrast(told(event), event["before"] or {}, event["after"] or {}, kind, groups)


def contrast(
    names: Iterable[str], before: Mapping[str, Any], after: Mapping[str, Any], kind: NodeKind | None, groups: Mapping[int, str]
) -> tuple[Change, ...]:
    """Give how two states of a record differ in some members. One that neither has is secret."""
    audiences = {f.name for f in kind.group_fields} if kind else set()
    found: list[Change] = []
    for name in names:
        if name not in before and name not in after:
            found.append(Change(_label(name)))
        else:
            change = _change(name, before.get(name), after.get(name), groups if name in audiences else None, groups)
            found += [] if change.secret else [change]
    return tuple(found)


def told(event: Mapping[str, Any]) -> list[str]:
    """Name the members that are worth telling of an event: what it changed, or all that say something of what it made or ended."""
    before, after = event["before"], event["after"]
    if before and after:
        moved = "parentId" in event["changed"]
        return [name for name in event["changed"] if name not in _UNTOLD and (name != "path" or moved)]
    whole = after or before or {}
    return [name for name, value in whole.items() if name not in _UNTOLD | {"path"} and value not in (None, "", [], {}, False)]


def _change(name: str, old: Any, new: Any, is_group: Mapping[int, str] | None, groups: Mapping[int, str]) -> Change:
    label = _label(name)
    if name == "permissions":
        old, new = old or {}, new or {}
        options = [option for option in {**old, **new} if old.get(option, []) != new.get(option, [])]
        rows = (
            _listed(option.capitalize(), _names(old.get(option), groups), _names(new.get(option), groups)) for option in options
        )
        return Change(label, rows=tuple(rows))
    if is_group is not None:
        return _listed(label, _names(old, is_group), _names(new, is_group))
    if isinstance(old, list) or isinstance(new, list):
        return _listed(label, [_said(one) for one in old or ()], [_said(one) for one in new or ()])
    return Change(label, parts=compared(_said(old), _said(new)))


def _listed(label: str, old: Sequence[str], new: Sequence[str]) -> Change:
    gone, added = tuple(one for one in old if one not in new), tuple(one for one in new if one not in old)
    return Change(label, gone=gone or (() if added else ("nobody",)), new=added)


def _names(who: Any, groups: Mapping[int, str]) -> list[str]:
    if who == EVERYONE:
        return ["every group"]
    return [groups.get(number, f"group {number}, deleted since") for number in who or ()]


def compared(old: str, new: str) -> tuple[Part, ...]:
    """Compare two texts: as wholes if they are short, word by word if they are long."""
    if old == new:
        return (("same", old),)
    words, others = re.findall(r"\s+|\w+|[^\w\s]", old), re.findall(r"\s+|\w+|[^\w\s]", new)
    short = max(len(old), len(new)) <= _LONG and "\n" not in old + new
    if short or not old or not new or max(len(words), len(others)) > _MOST_WORDS:
        return tuple((tone, _cut(text)) for tone, text in (("gone", old), ("new", new)) if text)
    parts: list[Part] = []
    for what, a, b, c, d in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        if what == "equal":
            parts.append(("same", _middle("".join(words[a:b]), first=a == 0, last=b == len(words))))
        else:
            parts += [(tone, text) for tone, text in (("gone", "".join(words[a:b])), ("new", "".join(others[c:d]))) if text]
    return tuple(parts)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]} … ({len(text):,} characters)"


def _middle(text: str, *, first: bool, last: bool) -> str:
    """Leave out the middle of a long stretch in which nothing has changed."""
    if len(text) <= 3 * _AROUND:
        return text
    return ("" if first else text[:_AROUND]) + " … " + ("" if last else text[-_AROUND:])


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _label(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").capitalize()
