"""Types that refer to other records: ids of nodes, and the groups that a permission is given to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields.lists import FormMapping, parse_json_text, split_list
from trellis.core.fields.numbers import parse_whole_number
from trellis.core.fields.type import Invalid, Type, quote
from trellis.sentences import Sentence, advise, say

MAX_ID: Final = 2**63 - 1
EVERYONE: Final = "*"
LONGEST_EXTERNAL_ID: Final = 255


@dataclass(frozen=True, slots=True)
class NodeId:
    """The id of a node. The field's description says which kind."""

    nullable: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if self.nullable and raw in (None, ""):
            return None
        number = parse_whole_number(raw)
        if number is None or not 1 <= number <= MAX_ID:
            raise Invalid(say("must be an id (a whole number from 1), not {raw}.", raw=quote(raw)))
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "null"] if self.nullable else "integer", "minimum": 1, "maximum": MAX_ID}


@dataclass(frozen=True, slots=True)
class ExternalId(Type):
    """The id of a node in another system: 1 to 255 visible characters. null and the empty string mean none, if `nullable`.

    It is never one or two dots: clients remove such a segment from a path before they send it (RFC 3986, 5.2.4). A node cannot be
    given one that `check_visible` refuses, but it may have one from an earlier release, by which it can still be found.
    """

    nullable: bool = False

    def parse(self, raw: Any) -> str | None:
        if self.nullable and raw in (None, ""):
            return None
        if not isinstance(raw, str) or not 1 <= len(raw) <= LONGEST_EXTERNAL_ID or not raw.isprintable() or " " in raw:
            raise Invalid(
                say(
                    "must be text of 1 to {longest_external_id} visible characters without spaces, not {raw}.",
                    longest_external_id=LONGEST_EXTERNAL_ID,
                    raw=quote(raw),
                )
            )
        if raw in {".", ".."}:
            raise Invalid(say("must not be {raw}, which has a special meaning in a path.", raw=quote(raw)))
        return raw

    def schema(self) -> dict[str, Any]:
        kind = ["string", "null"] if self.nullable else "string"
        return {"type": kind, "minLength": 1, "maxLength": LONGEST_EXTERNAL_ID, "pattern": "^\\S+$"}


@dataclass(frozen=True, slots=True)
class ExternalIds(Type):
    """A list of at most `most` external ids: a JSON list, or `a,b`. Order and duplicates are ignored."""

    most: int = 1000

    def parse(self, raw: Any) -> tuple[str, ...]:
        parts = split_list(raw)
        if parts is None or len(parts) > self.most:
            raise Invalid(
                say("must be at most {most} external ids, such as news,rules, not {raw}.", most=self.most, raw=quote(raw))
            )
        return tuple(sorted({ExternalId().parse(part) or "" for part in parts}))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": ExternalId().schema(), "maxItems": self.most}


@dataclass(frozen=True, slots=True, order=True)
class ByExternalId:
    """A node that a request names by its external id, in place of its id."""

    external_id: str


@dataclass(frozen=True, slots=True)
class ParentId:
    """The id of a parent. null, "", 0, -1 and `root` mean the top level; the schema of a list's `filter` names only `root`."""

    filter: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if raw is None or (isinstance(raw, str) and raw.strip().lower() in {"", "root", "null"}):
            return None
        number = parse_whole_number(raw)
        if number is None or not -1 <= number <= MAX_ID:
            raise Invalid(say("must be a parent's id, or null for the top level, not {raw}.", raw=quote(raw)), "INVALID_PARENT")
        return number if number > 0 else None

    def schema(self) -> dict[str, Any]:
        if self.filter:
            return {"anyOf": [{"type": "string", "const": "root"}, {"type": "integer", "minimum": 1, "maximum": MAX_ID}]}
        return {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_ID}


@dataclass(frozen=True, slots=True)
class ChildrenFate:
    """What happens to the children of a deleted node: -1 deletes them, the id of a node moves them there.

    `ignored`: there are no children, so whatever is sent is ignored.
    """

    ignored: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if self.ignored:
            return None
        number = parse_whole_number(raw)
        if number is None or number < -1 or number == 0 or number > MAX_ID:
            raise Invalid(
                say("must be -1 (delete the children) or the id of their new parent, not {raw}.", raw=quote(raw)), "INVALID_TARGET"
            )
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": -1, "maximum": MAX_ID, "not": {"const": 0}}


@dataclass(frozen=True, slots=True)
class Ids(Type):
    """A list of at most `most` ids: a JSON list, or `1,2,3`. Order and duplicates are ignored."""

    most: int = 1000

    def parse(self, raw: Any) -> tuple[int, ...]:
        parts = split_list(raw)
        if parts is None or len(parts) > self.most:
            raise Invalid(say("must be at most {most} ids, such as 1,2,3, not {raw}.", most=self.most, raw=quote(raw)))
        return tuple(sorted({NodeId().parse(part) or 0 for part in parts}))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": MAX_ID}, "maxItems": self.most}


@dataclass(frozen=True, slots=True)
class OrderedIds(Type):
    """A list of 1 to `most` ids in an order, each once: a JSON list, or `3,1,2`."""

    most: int = 1000

    def parse(self, raw: Any) -> tuple[int, ...]:
        parts = split_list(raw)
        if parts is None or not 1 <= len(parts) <= self.most:
            raise Invalid(say("must be 1 to {most} ids, such as 3,1,2, not {raw}.", most=self.most, raw=quote(raw)))
        ids = tuple(NodeId().parse(part) or 0 for part in parts)
        if len(set(ids)) != len(ids):
            raise Invalid(say("must list each id once, not {raw}.", raw=quote(raw)))
        return ids

    def schema(self) -> dict[str, Any]:
        return Ids(self.most).schema() | {"minItems": 1, "uniqueItems": True}


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups: "*" for every group, or a list of group ids. The operation checks that the groups exist.

    With `external`, the list may also name groups as `{"externalId": "mods"}`.
    """

    external: bool = False
    widget: str = "groups"

    def parse(self, raw: Any) -> str | tuple[int | ByExternalId, ...]:
        if isinstance(raw, str) and raw.strip() == EVERYONE:
            return EVERYONE
        parts = split_list(raw)
        if parts is None:
            raise self._invalid(raw)
        named = [part for part in parts if isinstance(part, Mapping)] if self.external else []
        try:
            ids = Ids().parse([part for part in parts if not isinstance(part, Mapping)] if named else raw)
            external = {ByExternalId(ExternalId().parse(part["externalId"]) or "") for part in named if len(part) == 1}
        except (Invalid, KeyError):
            raise self._invalid(raw) from None
        if any(len(part) != 1 for part in named) or len(named) > Ids().most:
            raise self._invalid(raw)
        return (*ids, *sorted(external))

    def _invalid(self, raw: Any) -> Invalid:
        also = say(' or external ids, such as [3, {"externalId": "mods"}]') if self.external else ""
        return Invalid(say('must be "*" (every group) or a list of group ids{also}, not {raw}.', also=also, raw=quote(raw)))

    def schema(self) -> dict[str, Any]:
        # The list comes first: a generated client tries the alternatives in order, and cannot go on from a constant.
        ids = Ids().schema()
        if self.external:
            named = {"type": "object", "properties": {"externalId": ExternalId().schema()}, "required": ["externalId"]}
            ids["items"] = {"anyOf": [ids["items"], named | {"additionalProperties": False}]}
        return {"oneOf": [ids, {"type": "string", "const": EVERYONE}]}


def _in_brackets(option: str) -> Sentence:
    return say(
        "In a form, send permissions[{option}]=* for every group, permissions[{option}][]=ID for each of some groups, or "
        "permissions[{option}]= for nobody.",
        option=option,
    )


@dataclass(frozen=True, slots=True)
class Permissions:
    """An object that maps each option to "*" or a list of groups, like `Groups`. Options that are not sent are left out.

    An object that was sent as a form remains a FormMapping.
    """

    options: Mapping[str, str]
    external: bool = False
    widget: str = "permissions"

    def parse(self, raw: Any) -> dict[str, str | tuple[int | ByExternalId, ...]]:
        raw = parse_json_text(raw)
        if not isinstance(raw, Mapping):
            raise Invalid(say('must be an object such as {{"view": "*", "add": [3]}}, not {raw}.', raw=quote(raw)))
        value: dict[str, str | tuple[int | ByExternalId, ...]] = FormMapping() if isinstance(raw, FormMapping) else {}
        for option, groups in raw.items():
            if option not in self.options:
                raise Invalid(
                    say(
                        "has no option {option}; the options are {options}.", option=quote(option), options=", ".join(self.options)
                    ),
                    "UNKNOWN_PARAMETER",
                )
            try:
                value[option] = Groups(self.external).parse(groups)
            except Invalid as invalid:
                told = say("'{option}' {detail}", option=option, detail=invalid.detail)
                raise Invalid(advise(told, _in_brackets(option)) if isinstance(raw, FormMapping) else told) from None
        return value

    def schema(self) -> dict[str, Any]:
        properties = {option: Groups(self.external).schema() | {"description": doc} for option, doc in self.options.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}
