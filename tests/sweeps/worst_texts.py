"""The worst texts that somebody may store, each bad for another way to read, compare or show them; and a community full of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.admin.conftest import PASSWORD
from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.kind import NodeKind
from trellis.core.operation import Call
from trellis.kinds import KINDS

LONGEST: Final = 100_000  # characters of a description
ANYWHERE: Final = "everywhere"  # in an external id, to find what was stored
Stored = Mapping[str, list[int]]  # for each kind, the nodes with each text


def _fill(part: str, length: int = LONGEST) -> str:
    return (part * (length // len(part) + 1))[:length].strip() or part


WORST: Final[Mapping[str, str]] = {
    "one word": _fill("a"),
    "two words": _fill("a "),
    "spaces": "a" + " " * (LONGEST - 2) + "a",
    "short lines": _fill("a\n"),
    "empty lines": "a" + "\n" * (LONGEST - 2) + "a",
    "combining characters": "a" + "\u0301" * (LONGEST - 1),
    "emoji": _fill("\U0001f600"),
    "turning": _fill("\u05d0\u202ea"),
    "brackets": "&lt;" * (LONGEST // 4),
    "quotes": _fill("\"'"),
    "deep": "<b>" * 90 + _fill("x", LONGEST - 1000) + "</b>" * 90,
    "links": '<a href="https://a.example" rel="noopener noreferrer">a</a>' * (LONGEST // 60),
    "numbers": _fill("1 22 333 "),
    "all different": " ".join(format(number, "x") for number in range(LONGEST // 6)),
    "braces": _fill("{a}{0}%s"),
    "backslashes": _fill("\\u0000\\"),
}
ORDINARY: Final = _fill("The hall is open from nine to five, and on Sundays there is tea. ")


def worst_name(length: int, kind: str = "") -> str:
    """Return a name that is bad for whatever cuts, compares or shows it."""
    return _fill("\U0001f600a\u0301 <\"'>", length - len(kind)) + kind


def ordinary_name(length: int, kind: str = "") -> str:
    """Return a name as ordinary people write it, as long."""
    return _fill("The garden of roses ", length - len(kind)) + kind


class Writer:
    """Stores as much text as may be stored, everywhere. `name` makes the names, `text` the descriptions, given a sort of them."""

    def __init__(self, gate: Gate, run: Run, key: MakeKey, name: Callable[..., str], text: Callable[[str], str]) -> None:
        self._gate = gate
        self._run = run
        self._key = key
        self._name = name
        self._text = text

    def store(self, mark: str, copies: int) -> Stored:
        """Store it, and change it. `mark` stands in what must be unlike others, `copies` is how many nodes of a kind there are."""
        stored: dict[str, list[int]] = {}
        for kind in KINDS:
            stored[kind.name] = self._store_nodes(kind, mark, copies)
            if kind.tree:
                self._store_levels(kind)
        self._propose()
        url = "https://hooks.example/" + "x" * 2000
        self._run("webhooks.create", url=url, events=["*"], description=self._name(500))
        self._run("admins.create", name=self._name(100), login=f"other-{mark}", password=PASSWORD)
        return stored

    def _store_nodes(self, kind: NodeKind, mark: str, copies: int) -> list[int]:
        texts = [field.name for field in kind.fields if getattr(field.type, "longest", 0) >= LONGEST]
        under: dict[str, Any] = {}
        stored: list[int] = []
        for sort in WORST if texts else ("",):
            text = self._text(sort) if texts else ""
            made = int(self._run(f"{kind.name}.create", name=self._name(200, sort), **dict.fromkeys(texts, text), **under)["id"])
            stored.append(made)
            if kind.tree and not under:
                under = {"parentId": made}
                self._run(f"{kind.name}.update", made, externalId=f"{ANYWHERE}-{mark}")
            if "<" not in text:
                changed = text[: LONGEST // 2] + " but " + text[: LONGEST // 3]
                self._run(f"{kind.name}.update", made, **dict.fromkeys(texts, changed))
            self._run(f"{kind.name}.update", made, **dict.fromkeys(texts, text), name=self._name(255))
        if texts and kind.tree:
            steps = [{"operation": f"{kind.name}.copy", "id": stored[-1], "body": {"parentId": None}}] * 40
            for _ in range(copies // 40):
                self._run("core.batch", operations=steps)
        return stored

    def _store_levels(self, kind: NodeKind) -> None:
        """Make a branch as deep as a tree may be."""
        first = last = int(self._run(f"{kind.name}.create", name=self._name(255))["id"])
        for levels in (1, 2, 4, 8, 16, 32):
            last = int(self._run(f"{kind.name}.copy", first, withChildren=True, parentId=last)["id"]) + levels - 1

    def _propose(self) -> None:
        bounds = {"forums.update": {"level": "propose"}}
        text = self._key(["*"], name=self._name(100), note=self._name(1000), bounds=bounds)
        agent = self._gate.store.read_single(lambda tx: authenticate(tx, text, self._gate.now())).actor
        forums = self._run("forums.list", sortBy="createdAt", sortDir="desc", perPage=3)["results"]
        for forum, sort in zip(forums, ("two words", "links", "emoji"), strict=True):
            raw = {"description": self._text(sort), "name": self._name(254)}
            self._gate.run(Call("forums.update", agent, raw, forum["id"], reason=self._name(500)))
