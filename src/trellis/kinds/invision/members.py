"""The members that several records of the dialect share, and its permissions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from trellis.core.dialect import DialectMember, FindGroups, Record, declare_constant, declare_copy
from trellis.core.fields import EVERYONE

_WHOLE: Final = {"type": "integer"}
_TEXT: Final = {"type": "string"}
_FIRST: Final = "perm_view"
_LAST: Final = 7  # perm_7 is the last one, used or not

ID: Final = declare_copy("id", _WHOLE, "Its id.")
NAME: Final = declare_copy("name", _TEXT, "Its name.")
PATH: Final = declare_copy("path", _TEXT, "The names from the top level down to the node, joined by ' > '.")
URL: Final = declare_copy("url", _TEXT, "The node's address in the community.")
CLUB: Final = declare_constant("club", 0, _WHOLE, "Always 0: there are no clubs.")
GROUP: Final = {
    "type": "object",
    "required": ["id", "name", "formattedName"],
    "properties": {"id": _WHOLE, "name": _TEXT, "formattedName": _TEXT},
}


def declare_class(name: str) -> DialectMember:
    """Declare the class that a node has in the suite."""
    return declare_constant("class", name, _TEXT, "The class that the suite has for it.")


def declare_parent(root: int | None) -> DialectMember:
    """Declare the parent's id; `root` stands for the top level."""
    kind = {"type": "integer"} if root is not None else {"type": ["integer", "null"]}
    doc = f"The id of its parent; {root if root is not None else 'null'} at the top level."
    return DialectMember("parentId", kind, doc, lambda record, _: root if (parent := record.get("parentId")) is None else parent)


def number_options(*options: str) -> Mapping[str, str]:
    """Return the names under which these permissions may be sent and are returned: their own names, and names with numbers.

    The first name with a number is perm_view, the second perm_2, and so on.
    """
    numbered = {_FIRST if number == 1 else f"perm_{number}": option for number, option in enumerate(options, 1)}
    return MappingProxyType({option: option for option in options} | numbered)


def declare_permissions(number: int, options: Mapping[str, str]) -> DialectMember:
    """Declare the permissions of a kind. `number`, below ten, is unique to the kind, so that `perm_id` is unique to the node."""
    names = (_FIRST, *(f"perm_{place}" for place in range(2, _LAST + 1)))
    schema = {
        "type": "object",
        "required": ["perm_id", *names],
        "properties": {"perm_id": _WHOLE} | {name: {"type": ["string", "null"]} for name in names} | {_FIRST: _TEXT},
    }
    used = ", ".join(f"{name} {options[name]}" for name in names if name in options)
    doc = f'Who may do what: "*", or ids of groups joined by commas; nobody is "" in {_FIRST} and null in the others. {used}.'
    return DialectMember("permissions", schema, doc, _build_permissions(number, {name: options.get(name, "") for name in names}))


def _build_permissions(number: int, names: Mapping[str, str]) -> Callable[[Record, FindGroups], dict[str, Any]]:
    def build(record: Record, _: FindGroups) -> dict[str, Any]:
        held = record["permissions"]
        written: dict[str, Any] = {"perm_id": record["id"] * 10 + number}
        for name, option in names.items():
            who = held.get(option) or ()
            nobody = "" if name == _FIRST else None
            written[name] = EVERYONE if who == EVERYONE else ",".join(map(str, who)) or nobody
        return written

    return build
