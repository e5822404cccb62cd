"""Our kinds in the suite (Invision Community): their names, paths and members, from the declarations of its dialect."""

from collections.abc import Mapping, Sequence
from typing import Final

from trellis.core.dialect import DialectKind
from trellis.core.kind import NodeKind
from trellis.kinds.invision import INVISION

PREFIX: Final = INVISION.name  # of external ids; also the name of the document
ROLES: Final[Mapping[str, frozenset[str]]] = {  # the names of the built-in groups in the suite, by their external ids
    "guests": frozenset(("guests", "guest")),
    "members": frozenset(("members", "member")),
    "administrators": frozenset(("administrators", "administrator", "admins")),
}
# Our members that the suite's answers contain in another form.
_ALSO_TOLD: Final[Mapping[str, tuple[str, ...]]] = {"groups": ("prefix", "suffix")}
# Cautions for everybody who moves in, by kind.
CAUTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "forums": (
        (
            "Forums that were restricted by a password, by a minimum number of posts or to members' own topics are open here to "
            "everybody whom their permissions allow."
        ),
    )
}


def choose_known(kinds: Sequence[NodeKind]) -> list[NodeKind]:
    """Return the kinds that exist in the suite."""
    return [kind for kind in kinds if kind.name in INVISION.kinds]


def find_dialect_kind(kind: NodeKind) -> DialectKind:
    """Return a kind as the suite declares it."""
    return INVISION.kinds[kind.name]


def find_paths(kind: NodeKind) -> tuple[str, ...]:
    """Return the paths at which the suite serves a kind: the current path first, then the path of older releases."""
    return tuple(path.removeprefix("/") for path in (*kind.also, kind.path))


def name_external(kind: NodeKind, number: int) -> str:
    """Return the external id of a node, such as `invision:forum:12`."""
    return f"{PREFIX}:{kind.singular.rpartition(' ')[2]}:{number}"


def list_told(kind: NodeKind) -> frozenset[str]:
    """Return the fields of a kind that the suite's answers contain under the same name."""
    return frozenset(member.name for member in find_dialect_kind(kind).members).intersection(f.name for f in kind.fields)


def list_lost(kind: NodeKind) -> tuple[str, ...]:
    """Return the members of a kind that the suite's answers do not contain."""
    told = list_told(kind).union(_ALSO_TOLD.get(kind.name, ()))
    order = ("order",) if kind.ordered else ()
    return (*order, *(f.name for f in kind.fields if not f.read_only and f.name not in told))
