"""What the suite calls our kinds, where it serves them, and what its answers tell of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trellis.core.kind import NodeKind

PREFIX: Final = "invision"  # of external ids; also the name of the document
ROLES: Final[Mapping[str, frozenset[str]]] = {  # what the built-in groups are called in the suite, by what documents call them
    "guests": frozenset(("guests", "guest")),
    "members": frozenset(("members", "member")),
    "administrators": frozenset(("administrators", "administrator", "admins")),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What the suite tells of a kind. `word` is what external ids call a node; `members` are ours that its answers tell.

    `cautions` are what everybody should know of it who moves in.
    """

    word: str
    members: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


TOLD: Final[Mapping[str, Told]] = {
    "groups": Told("group", ("prefix", "suffix")),
    "forums": Told(
        "forum",
        ("type",),
        ("Forums that were closed by a password, a minimum of posts or for others' topics are open here to all whom they allow.",),
    ),
    "blogs": Told("blog", ("description", "owner", "groups", "pinned")),
    "calendars": Told("calendar"),
    "categories": Told("category"),
}


def find_paths(kind: NodeKind) -> tuple[str, ...]:
    """Return where the suite serves a kind: today's path, then that of older releases."""
    return tuple(path.removeprefix("/") for path in (*kind.also, kind.path))


def name_external(kind: NodeKind, number: int) -> str:
    """Return the external id of a node, such as `invision:forum:12`."""
    return f"{PREFIX}:{TOLD[kind.name].word}:{number}"


def list_lost(kind: NodeKind) -> tuple[str, ...]:
    """Return the members of a kind that the suite's answers do not tell."""
    told = TOLD[kind.name].members
    order = ("order",) if kind.ordered else ()
    return (*order, *(f.name for f in kind.fields if not f.read_only and f.name not in told))
