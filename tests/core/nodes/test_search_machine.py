"""A search finds what a plain look at every name finds, whatever was made, renamed, deleted and brought back before it.

Hypothesis makes up the sequences. The index for searching is caught up with at any moment, or not for a long time.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from tests.core.machine import CommunityMachine
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.store.lists import search
from trellis.store.nodes import rows

PIECES = ["News", "new", "STRASSE", "straße", "İst", "e\u0301", "é", "%", "_", "\\", '"', "'", "*", "日本語", "😀", " ", "a"]
names = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join).filter(str.strip)
picks = st.integers(0, 30)


class Names(CommunityMachine):
    """Forums and categories with names that are hard to find, and deletes that can be taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[int] = []

    def every(self, kind: str) -> list[tuple[int, str]]:
        with self.gate.store.reading() as tx:
            return [(node.id, rows.fold_name(node.name)) for node in rows.find_all(tx, kind)]

    def pick(self, number: int) -> int | None:
        ids = [id for id, _ in self.every("forums")]
        return ids[number % len(ids)] if ids else None

    @rule(name=names, kind=st.sampled_from(["forums", "forums", "categories"]), under=st.none() | picks)
    def create(self, name: str, kind: str, under: int | None) -> None:
        parent = self.pick(under) if under is not None and kind == "forums" else None
        self.run(f"{kind}.create", name=name, parentId=parent)

    @rule(node=picks, name=names)
    def rename(self, node: int, name: str) -> None:
        if (target := self.pick(node)) is not None:
            self.run("forums.update", target, name=name)

    @rule(node=picks)
    def delete(self, node: int) -> None:
        if (target := self.pick(node)) is not None:
            event = self.gate.run(Call("forums.delete", TERMINAL, {"deleteChildrenOrMove": -1}, target)).event
            self.deleted.append(event or 0)

    @rule()
    def restore(self) -> None:
        if self.deleted:
            self.run("events.restore", self.deleted.pop())

    @rule(most=st.integers(1, 5))
    def catch_up(self, most: int) -> None:
        self.gate.store.write(lambda tx: search.update_search_index(tx, most)).result(30)
        self.gate.store.write(search.trim_journal).result(30)

    @rule(text=names)
    def look(self, text: str) -> None:
        self.compare(text)

    @rule(node=picks, first=st.integers(0, 8), length=st.integers(1, 8))
    def look_for_a_part(self, node: int, first: int, length: int) -> None:
        if (target := self.pick(node)) is not None:
            name = str(self.run("forums.get", target)["name"])
            self.compare(name[first : first + length] or name)

    def compare(self, text: str) -> None:
        for kind in ("forums", "categories"):
            folded = rows.fold_name(text.strip())
            expected = [id for id, name in self.every(kind) if folded in name]
            found: dict[str, Any] = self.run(f"{kind}.list", search=text.strip(), perPage=1000)
            assert (found["totalResults"], [one["id"] for one in found["results"]]) == (len(expected), expected)

    @invariant()
    def a_common_text_is_counted_exactly(self) -> None:
        self.compare("new")
        self.compare("a")


def test_a_search_finds_what_a_look_at_every_name_finds(new_settings: NewSettings) -> None:
    here = type("Here", (Names,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 8, stateful_step_count=30)
    run_state_machine_as_test(here, settings=bounded)
