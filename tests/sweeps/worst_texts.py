"""The worst texts that somebody may store, each bad for another way to read, compare or show them; and a community full of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.admin.conftest import PASSWORD
from tests.fixture_types import Run
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.kind import NodeKind
from trellis.core.operation import Call
from trellis.kinds import KINDS

LONGEST: Final = 100_000  # characters that a description may have
ANYWHERE: Final = "everywhere"  # the external id of the node below which others are stored
Stored = Mapping[str, list[int]]  # for each kind, the nodes with each text


def _fill(part: str, length: int) -> str:
    return (part * (length // len(part) + 1))[:length].strip() or part


def worst_texts(length: int) -> Mapping[str, str]:
    """Return the worst texts, by their sort, each about as long."""
    return {
        "one word": _fill("a", length),
        "two words": _fill("a ", length),
        "spaces": "a" + " " * (length - 2) + "a",
        "short lines": _fill("a\n", length),
        "empty lines": "a" + "\n" * (length - 2) + "a",
        "combining characters": "a" + "\u0301" * (length - 1),
        "emoji": _fill("\U0001f600", length),
        "turning": _fill("\u05d0\u202ea", length),
        "brackets": "&lt;" * (length // 4),
        "quotes": _fill("\"'", length),
        "deep": "<b>" * 90 + _fill("x", length - 1000) + "</b>" * 90,
        "links": '<a href="https://a.example" rel="noopener noreferrer">a</a>' * (length // 60),
        "numbers": _fill("1 22 333 ", length),
        "all different": " ".join(format(number, "x") for number in range(length // 6)),
        "braces": _fill("{a}{0}%s", length),
        "backslashes": _fill("\\u0000\\", length),
    }


SORTS: Final = tuple(worst_texts(0))
ORDINARY: Final = _fill("The hall is open from nine to five, and on Sundays there is tea. ", LONGEST)


def worst_name(length: int, kind: str = "") -> str:
    """Return a name that is bad for whatever cuts, compares or shows it."""
    return _fill("\U0001f600a\u0301 <\"'>", length - len(kind)) + kind


def ordinary_name(length: int, kind: str = "") -> str:
    """Return a name as ordinary people write it, as long."""
    return _fill("The garden of roses ", length - len(kind)) + kind


class Writer:
    """Stores as much text as may be stored, everywhere. `name` makes the names, `text` the descriptions, given a sort of them."""

    def __init__(self, gate: Gate, run: Run, name: Callable[..., str], text: Callable[[str], str]) -> None:
        self._gate = gate
        self._run = run
        self._name = name
        self._text = text

    def store(self, copies: int) -> Stored:
        """Store it, and change it. `copies` is how many nodes of a kind there are."""
        stored: dict[str, list[int]] = {}
        for kind in KINDS:
            stored[kind.name] = self._store_nodes(kind, copies)
            if kind.tree:
                self._store_levels(kind)
        self._propose()
        url = "https://hooks.example/" + "x" * 2000
        self._run("webhooks.create", url=url, events=["*"], description=self._name(500))
        self._run("admins.create", name=self._name(100), login="other", password=PASSWORD)
        return stored

    def _store_nodes(self, kind: NodeKind, copies: int) -> list[int]:
        texts = [field.name for field in kind.fields if getattr(field.type, "longest", 0) >= LONGEST]
        under: dict[str, Any] = {}
        stored: list[int] = []
        for sort in SORTS if texts else ("",):
            text = self._text(sort) if texts else ""
            made = int(self._run(f"{kind.name}.create", name=self._name(200, sort), **dict.fromkeys(texts, text), **under)["id"])
            stored.append(made)
            if kind.tree and not under:
                under = {"parentId": made}
                self._run(f"{kind.name}.update", made, externalId=ANYWHERE)
            if "<" not in text:
                changed = text[: len(text) // 2] + " but " + text[: len(text) // 3]
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
        agent_key = self._run("keys.create", grants=["*"], name=self._name(100), note=self._name(1000), bounds=bounds)["key"]
        agent = self._gate.store.read_single(lambda tx: authenticate(tx, agent_key, self._gate.now())).actor
        forums = self._run("forums.list", sortBy="createdAt", sortDir="desc", perPage=3)["results"]
        for forum, sort in zip(forums, ("two words", "links", "emoji"), strict=True):
            raw = {"description": self._text(sort), "name": self._name(254)}
            self._gate.run(Call("forums.update", agent, raw, forum["id"], reason=self._name(500)))
