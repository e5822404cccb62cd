"""Types that refer to other records: ids of nodes, and the groups that a permission is given to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields.lists import parse_json_text, split_list
from trellis.core.fields.numbers import parse_whole_number
from trellis.core.fields.type import Invalid, quote

MAX_ID: Final = 2**63 - 1
EVERYONE: Final = "*"


@dataclass(frozen=True, slots=True)
class NodeId:
    """The id of a node. The field's description says of which kind."""

    nullable: bool = False
    widget: str = "node"

    def parse(self, raw: Any) -> int | None:
        if self.nullable and raw in (None, ""):
            return None
        number = parse_whole_number(raw)
        if number is None or not 1 <= number <= MAX_ID:
            raise Invalid(f"must be an id, a whole number from 1 up, not {quote(raw)}.")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "null"] if self.nullable else "integer", "minimum": 1, "maximum": MAX_ID}


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
            raise Invalid(f"must be a parent's id, or null for the top level, not {quote(raw)}.", "INVALID_PARENT")
        return number if number > 0 else None

    def schema(self) -> dict[str, Any]:
        if self.filter:
            return {"anyOf": [{"type": "string", "const": "root"}, {"type": "integer", "minimum": 1, "maximum": MAX_ID}]}
        return {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_ID}


@dataclass(frozen=True, slots=True)
class ChildrenFate:
    """What happens to the children of a deleted node: -1 deletes them, an id is where they move."""

    widget: str = "node"

    def parse(self, raw: Any) -> int:
        number = parse_whole_number(raw)
        if number is None or number < -1 or number == 0 or number > MAX_ID:
            raise Invalid(f"must be -1 (delete the children) or the id of their new parent, not {quote(raw)}.", "INVALID_TARGET")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": -1, "maximum": MAX_ID, "not": {"const": 0}}


@dataclass(frozen=True, slots=True)
class Ids:
    """A list of at most `most` ids: a JSON list, or `1,2,3`. Order and duplicates mean nothing."""

    most: int = 1000
    widget: str = "text"

    def parse(self, raw: Any) -> tuple[int, ...]:
        parts = split_list(raw)
        if parts is None or len(parts) > self.most:
            raise Invalid(f"must be at most {self.most} ids, such as 1,2,3, not {quote(raw)}.")
        return tuple(sorted({NodeId().parse(part) or 0 for part in parts}))

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": MAX_ID}, "maxItems": self.most}


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups: "*" for every group, or a list of group ids. The operation checks that the groups exist."""

    widget: str = "groups"

    def parse(self, raw: Any) -> str | tuple[int, ...]:
        if isinstance(raw, str) and raw.strip() == EVERYONE:
            return EVERYONE
        try:
            return Ids().parse(raw)
        except Invalid:
            raise Invalid(f'must be "*" (every group) or a list of group ids, not {quote(raw)}.') from None

    def schema(self) -> dict[str, Any]:
        # The list first: a generated client tries them in order, and cannot go on from a constant.
        return {"oneOf": [Ids().schema(), {"type": "string", "const": EVERYONE}]}


@dataclass(frozen=True, slots=True)
class Permissions:
    """An object that maps each option to "*" or a list of group ids. Options that are not sent are not in the value."""

    options: Mapping[str, str]
    widget: str = "permissions"

    def parse(self, raw: Any) -> dict[str, str | tuple[int, ...]]:
        raw = parse_json_text(raw)
        if not isinstance(raw, Mapping):
            raise Invalid(f'must be an object such as {{"view": "*", "add": [3]}}, not {quote(raw)}.')
        value: dict[str, str | tuple[int, ...]] = {}
        for option, groups in raw.items():
            if option not in self.options:
                raise Invalid(f"has no option {quote(option)}; the options are {', '.join(self.options)}.", "UNKNOWN_PARAMETER")
            try:
                value[option] = Groups().parse(groups)
            except Invalid as invalid:
                raise Invalid(f"'{option}' {invalid.detail}") from None
        return value

    def schema(self) -> dict[str, Any]:
        properties = {option: Groups().schema() | {"description": doc} for option, doc in self.options.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}
