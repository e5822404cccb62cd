"""Examines a stored node: whether it is valid for its kind today, and what it would be after a repair."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from trellis.core.fields import Field, Groups, Invalid, Password, Timestamp, Type, check_visible, quote
from trellis.core.nodes import NodeKind
from trellis.invisible import find_invisible, remove_invisible
from trellis.sentences import say
from trellis.store.check import StoredNode
from trellis.store.nodes import Node, fold_name

_NAME_KEY: Final = "name key"  # the problem whose repair does not change the record
_DIGEST: Final = "$argon2"  # every password hash begins with this
_GROUPS: Final = Groups()
_FEW: Final = 1000  # bytes of a list of groups
Repair = Callable[[], None]


class Problem(NamedTuple):
    """A defect: a short code (`problem`) and a sentence (`detail`). `id` is None if it concerns more than one record."""

    resource: str
    id: int | None
    problem: str
    detail: str
    repairable: bool = True


class ProblemGroup(NamedTuple):
    """Problems that belong together, and the function that repairs them; None if they cannot be repaired."""

    problems: tuple[Problem, ...]
    repair: Repair | None = None


def build_finding(resource: str, number: int | None, problem: str, detail: str, repair: Repair | None = None) -> ProblemGroup:
    """Return the finding of a single problem, which is repairable if there is a function that repairs it."""
    return ProblemGroup((Problem(resource, number, problem, detail, repairable=repair is not None),), repair)


@dataclass(slots=True)
class Examination:
    """The problems of a node, the node with the repairable ones repaired, and whether that changes its record.

    `is_readable`: whether its fields and permissions are JSON objects.
    """

    repaired: Node
    changes: bool
    is_readable: bool
    problems: list[Problem] = field(default_factory=list)

    @property
    def repairable(self) -> bool:
        """Whether saving the repaired node repairs any of the problems."""
        return any(problem.repairable for problem in self.problems)


def examine(kind: NodeKind, stored: StoredNode, groups: AbstractSet[int] | None) -> Examination:
    """Examine a stored node. `groups` are the ids of all groups that exist; None if they are not known."""
    examiner = _Examiner(kind, stored.id, groups)
    name = examiner.name(stored)
    fields = examiner.fields(stored.fields)
    permissions = examiner.permissions(stored.permissions)
    examiner.moments(stored)
    examiner.external_id(stored)
    # Not by comparing the values: 1 equals True.
    changes = any(problem.repairable and problem.problem != _NAME_KEY for problem in examiner.problems)
    node = Node(
        id=stored.id,
        parent_id=stored.parent_id,
        position=stored.position,
        name=name,
        fields=fields,
        permissions=permissions,
        created_at=stored.created_at,
        updated_at=stored.updated_at,
        external_id=stored.external_id,
        managed_by=stored.managed_by,
    )
    is_readable = stored.fields is not None and stored.permissions is not None
    return Examination(node, changes, is_readable, examiner.problems)


class _Examiner:
    """Examines the parts of one node and collects their problems."""

    def __init__(self, kind: NodeKind, node: int, groups: AbstractSet[int] | None) -> None:
        self._kind = kind
        self._node = node
        self._groups = groups
        self.problems: list[Problem] = []

    def _add(self, problem: str, detail: str, *, repairable: bool = True) -> None:
        self.problems.append(Problem(self._kind.name, self._node, problem, detail, repairable))

    def name(self, stored: StoredNode) -> str:
        name = stored.name
        try:
            name = self._kind.name_field.type.parse(stored.name)
        except Invalid as invalid:
            if (mended := mend_text(self._kind.name_field.type, name)) is None:
                hint = say("Change it: trellis run {name}.update id={node} name=…", name=self._kind.name, node=self._node)
                self._add("name", say("its name {detail} {hint}", detail=invalid.detail, hint=hint), repairable=False)
            else:
                self._add(
                    "name", say("its name {detail} Once repaired, it is {mended}.", detail=invalid.detail, mended=quote(mended))
                )
                name = mended
        else:
            if name != stored.name:
                self._add("name", say("its name is stored as {name}, with spaces around it", name=quote(stored.name)))
        if fold_name(stored.name) != stored.name_key:
            self._add(
                _NAME_KEY,
                say(
                    "it is sorted and found as {key}, but its name is {name}",
                    key=quote(stored.name_key),
                    name=quote(stored.name),
                ),
            )
        return name

    def moments(self, stored: StoredNode) -> None:
        for label, text in (("creation", stored.created_at), ("last change", stored.updated_at)):
            try:
                good = Timestamp().parse(text) == text
            except Invalid:
                good = False
            if not good:
                self._add(
                    "moment",
                    say("the time of its {label} is stored as {text}, which is not a timestamp", label=label, text=quote(text)),
                    repairable=False,
                )

    def external_id(self, stored: StoredNode) -> None:
        try:
            check_visible(stored.external_id or "")
        except Invalid as invalid:
            hint = say("Change it: trellis run {name}.update id={node} externalId=…", name=self._kind.name, node=self._node)
            detail = say("its external id {detail} {hint}", detail=invalid.detail, hint=hint)
            self._add("external id", detail, repairable=False)

    def fields(self, stored: Mapping[str, Any] | None) -> dict[str, Any]:
        if stored is None:
            self._add("field", say("its fields are not a JSON object; the defaults replace them"))
            stored = {f.name: f.default for f in self._kind.fields}
        fields = {f.name: self._field(f, stored) for f in self._kind.fields}
        for name in sorted(stored.keys() - fields.keys()):
            self._add(
                "field",
                say("it has a field {name}, which does not belong to a {singular}", name=quote(name), singular=self._kind.singular),
            )
        prepared = dict(self._kind.prepare(fields))
        for name, value in prepared.items():
            if not _are_equal(value, fields[name]):
                self._add_outdated(name, fields[name], value)
                fields[name] = value
        for rule in self._kind.rules:
            for fault in rule(fields):
                self._add("rule", fault.detail, repairable=False)
        return fields

    def _add_outdated(self, name: str, stored: Any, today: Any) -> None:
        self._add(
            "field",
            say("{name} is stored as {stored}; today it would be {value}", name=name, stored=quote(stored), value=quote(today)),
        )

    def _field(self, f: Field, stored: Mapping[str, Any]) -> Any:
        default = _as_list(f.default)
        if f.name not in stored:
            if default is not None:
                self._add("field", say("{name} is missing; its default is {default}", name=f.name, default=quote(default)))
            return default
        value = stored[f.name]
        if isinstance(f.type, Password):
            if value is not None and not str(value).startswith(_DIGEST):
                self._add("field", say("{name} is not stored as a hash: set it again", name=f.name), repairable=False)
            return value
        try:
            parsed = _as_list(f.type.parse(value))
        except Invalid as invalid:
            if (mended := mend_text(f.type, value)) is not None:
                self._add(
                    "field",
                    say("{name} {detail} Once repaired, it is {mended}.", name=f.name, detail=invalid.detail, mended=quote(mended)),
                )
                return mended
            self._add("field", say("{name} {detail}", name=f.name, detail=invalid.detail))
            return default
        if not _are_equal(parsed, value):
            self._add_outdated(f.name, value, parsed)
            value = parsed
        return self._without_gone(f.name, value) if isinstance(f.type, Groups) else value

    def permissions(self, stored: Mapping[str, Any] | None) -> dict[str, Any]:
        if stored is None:
            self._add("permission", say("its permissions are not a JSON object; empty permissions replace them"))
            stored = {option: [] for option in self._kind.options}
        for option in sorted(stored.keys() - self._kind.options.keys()):
            self._add(
                "permission",
                say(
                    "it has an option {option}, which does not belong to a {singular}",
                    option=quote(option),
                    singular=self._kind.singular,
                ),
            )
        return {option: self._option(option, stored) for option in self._kind.options}

    def _option(self, option: str, stored: Mapping[str, Any]) -> Any:
        if option not in stored:
            self._add("permission", say("the option {option} is missing; nobody has it", option=option))
            return []
        try:
            who = _parse_groups(stored[option])
        except Invalid as invalid:
            self._add("permission", say("the option {option} {detail}", option=option, detail=invalid.detail))
            return []
        if not _are_equal(who, stored[option]):
            self._add(
                "permission",
                say(
                    "the option {option} is stored as {stored}; today it would be {value}",
                    option=option,
                    stored=quote(stored[option]),
                    value=quote(who),
                ),
            )
        return self._without_gone(option, who)

    def _without_gone(self, where: str, who: Any) -> Any:
        groups = self._groups
        if groups is None or not isinstance(who, list) or not (gone := [group for group in who if group not in groups]):
            return who
        self._add(
            "group", say("{where} names groups that no longer exist: {groups}", where=where, groups=", ".join(map(str, gone)))
        )
        return [group for group in who if group in groups]


def mend_text(text_type: Type, value: Any) -> str | None:
    """Return a text of this type without its invisible characters; None if it has none, or is invalid without them, too."""
    if not isinstance(value, str) or find_invisible(value) is None:
        return None
    try:
        mended = text_type.parse(remove_invisible(value))
    except Invalid:
        return None
    return mended if isinstance(mended, str) else None


def _parse_groups(stored: Any) -> Any:
    """Parse who has a permission, once for all nodes for which the same few groups are stored. The result must not be changed."""
    try:
        text = orjson.dumps(stored)
    except orjson.JSONEncodeError:  # lists within lists, deeper than it writes
        text = None
    return _as_list(_GROUPS.parse(stored)) if text is None or len(text) > _FEW else _parse_json_groups(text)


@lru_cache(1000)  # which stay in memory
def _parse_json_groups(stored: bytes) -> Any:
    return _as_list(_GROUPS.parse(orjson.loads(stored)))


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _are_equal(one: Any, other: Any) -> bool:
    """Return whether a stored value is what it would be today, ignoring spaces at both ends, which sanitising may leave."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip() == other.strip()
    return type(one) is type(other) and bool(one == other)
