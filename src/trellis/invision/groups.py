"""Matching each group of the old community to one of ours: a chosen one, a built-in one, one with the same name, or a new one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from trellis.core.fields import parse_whole_number, quote
from trellis.core.kind import NodeKind
from trellis.invision.answers import ReadingFailed
from trellis.invision.names import decode_entities
from trellis.invision.present import Present
from trellis.invision.suite import PREFIX, ROLES, name_external


@dataclass(slots=True)
class Match:
    """The match of an old group: its external id here, its record here (None if it is new), and notes on how it was found."""

    external_id: str
    here: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    is_chosen: bool = False

    @property
    def is_managed_elsewhere(self) -> bool:
        """Whether the group here is managed by another document."""
        return self.here is not None and self.here["managedBy"] not in {None, PREFIX}


class GroupMatcher:
    """Finds our group for each old one."""

    def __init__(self, kind: NodeKind, records: Sequence[Mapping[str, Any]], present: Present) -> None:
        self._kind = kind
        self._present = present
        self._old = {int(record["id"]): fold(decode_entities(str(record.get("name")))) for record in records}
        self._found: dict[int, Match] = {}
        self._by_name: dict[str, list[Mapping[str, Any]]] = {}
        for record in present.groups:
            self._by_name.setdefault(fold(record["name"]), []).append(record)

    def match(self, chosen: Mapping[int, str]) -> dict[int, Match]:
        """Return the match of each old group by its id. `chosen` are the operator's choices: old id → external id here.

        Raises ReadingFailed if a chosen group does not exist.
        """
        here = {self._name(record): record for record in self._present.groups}
        for number, external_id in chosen.items():
            if number not in self._old or external_id not in here:
                known = ", ".join(sorted(name for name in here if name)) or "none"
                missing = (
                    f"the old community has no group {number}"
                    if number not in self._old
                    else f"there is no {quote(external_id)} here"
                )
                raise ReadingFailed(f"--group {number}={external_id}: {missing}. External ids of groups here: {known}.")
            self._found[number] = Match(
                external_id, here[external_id], [f"It was matched to '{external_id}' by --group."], is_chosen=True
            )
        for record in self._present.groups:
            if record["id"] in self._kind.built_in:
                self._match_built_in(record)
        names = Counter(self._old.values())
        taken = {match.external_id for match in self._found.values()} | {name_external(self._kind, one) for one in self._old}
        for number, name in self._old.items():
            if number not in self._found:
                match = self._found[number] = self._match_name(number, name, taken, unique=names[name] == 1)
                taken.add(match.external_id)
        return self._found

    def _name(self, record: Mapping[str, Any]) -> str | None:
        """Return the external id of one of our groups."""
        external_id: str | None = record["externalId"] or self._kind.built_in.get(record["id"])
        return external_id

    def _match_built_in(self, record: Mapping[str, Any]) -> None:
        """Match a built-in group to the old group with the name of its role, or if there is none, to the one with the same id.

        An old group that already has a record here, by the external id made from its old id, was matched before and is skipped.
        """
        number, external_id = int(record["id"]), self._name(record) or ""
        if any(match.external_id == external_id for match in self._found.values()):
            return
        names = ROLES.get(self._kind.built_in[number], frozenset())
        free = [old for old in self._old if old not in self._found and self._find_own(old) is None]
        named = [old for old in free if self._old[old] in names]
        if len(named) == 1 or number in named:
            self._found[number if number in named else named[0]] = Match(external_id, record)
        elif not named and number in free and not any(self._old[number] in others for others in ROLES.values()):
            told = f"It was matched to '{external_id}' by its id, not by its name. If that is wrong, pass --group OLD={external_id}"
            self._found[number] = Match(external_id, record, [told])

    def _find_own(self, number: int) -> Mapping[str, Any] | None:
        """Return our group whose external id was made from an old id; None if there is none."""
        return self._present.find(self._kind, name_external(self._kind, number))

    def _match_name(self, number: int, name: str, taken: AbstractSet[str], *, unique: bool) -> Match:
        """Match an old group to the one that it was matched to before, or to the one of its name whose external id is not taken."""
        own = name_external(self._kind, number)
        if (record := self._find_own(number)) is not None:
            return Match(own, record)
        same = [one for one in self._by_name.get(name, ()) if self._name(one) not in taken]
        external_id = self._name(same[0]) if unique and len(same) == 1 else None
        if external_id is not None:
            return Match(external_id, same[0], [f"It was matched to '{external_id}' by its name."])
        notes = ["A group of this name exists here. --adopt takes it over; otherwise a second one is created."] if same else []
        named = {self._name(one) for one in self._by_name.get(name, ())}
        notes += [
            "The group of this name here was matched to another one by --group, so that this one becomes a second group of that "
            f"name. To make them one, also pass --group {number}={match.external_id}."
            for match in self._found.values()
            if match.is_chosen and match.external_id in named
        ]
        return Match(own, None, notes)


def fold(name: Any) -> str:
    """Return the form in which names are compared: case-folded, with single spaces."""
    return " ".join(str(name).split()).casefold()


def list_groups(raw: Any) -> Iterator[int | None]:
    """Yield the ids of groups in a list of ids or of group objects; None for an element that is neither."""
    for one in raw if isinstance(raw, list) else ():
        yield parse_whole_number(one.get("id") if isinstance(one, Mapping) else one)
