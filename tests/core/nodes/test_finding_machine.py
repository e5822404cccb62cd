"""Lists find what a plain look at every node finds, whatever was made, changed, moved and deleted before.

Hypothesis makes up the edits and the queries; the model is a dictionary of the records as the writes returned them.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.conftest import NewSettings
from tests.core.machine import CommunityMachine

NAMES = ["News", "news", "Straße", "STRASSE", "a,b", "%", "é", "e\u0301"]
EXTERNAL = [None, "a", "A", "b/c", "%", "7", "ä"]
TYPES = ["discussions", "questions", "category"]
picks = st.integers(0, 30)
names, external_ids, types = st.sampled_from(NAMES), st.sampled_from(EXTERNAL), st.sampled_from(TYPES)
queries = st.fixed_dictionaries(
    {
        "sortBy": st.sampled_from(["id", "name"]),
        "sortDir": st.sampled_from(["asc", "desc"]),
        "perPage": st.sampled_from([1, 2, 3, 1000]),
    },
    optional={
        "name": names,
        "externalIds": st.lists(st.sampled_from([one for one in EXTERNAL if one]), min_size=1, max_size=4),
        "under": picks,
        "type": st.lists(types, min_size=1, max_size=3),
        "include": st.just("childCount"),
    },
)


class Finding(CommunityMachine):
    """Forums in a tree, as the service has them and as a dictionary has them."""

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[int, dict[str, Any]] = {}
        self.deleted: list[dict[int, dict[str, Any]]] = []

    def pick(self, number: int) -> int | None:
        ids = sorted(self.model)
        return ids[number % len(ids)] if ids else None

    def below(self, root: int | None) -> set[int]:
        found: set[int] = set()
        more = {root}
        while more:
            more = {node for node, record in self.model.items() if record["parentId"] in more}
            found |= {node for node in more if node is not None}
        return found

    def free(self, external_id: str | None, node: int | None = None) -> str | None:
        taken = {record["externalId"] for number, record in self.model.items() if number != node}
        return None if external_id in taken else external_id

    @rule(name=names, kind=types, external_id=external_ids, under=st.none() | picks)
    def create(self, name: str, kind: str, external_id: str | None, under: int | None) -> None:
        parent = None if under is None else self.pick(under)
        made = self.run("forums.create", name=name, type=kind, externalId=self.free(external_id), parentId=parent)
        self.model[made["id"]] = made

    @rule(node=picks, name=names, kind=types, external_id=external_ids)
    def change(self, node: int, name: str, kind: str, external_id: str | None) -> None:
        if (target := self.pick(node)) is not None:
            wanted = self.free(external_id, target)
            self.model[target] = self.run("forums.update", target, name=name, type=kind, externalId=wanted)

    @rule(node=picks, under=st.none() | picks)
    def move(self, node: int, under: int | None) -> None:
        target, parent = self.pick(node), None if under is None else self.pick(under)
        if target is not None and parent not in {target, *self.below(target)}:
            self.model[target] = self.run("forums.update", target, parentId=parent)

    @rule(node=picks)
    def delete(self, node: int) -> None:
        if (target := self.pick(node)) is not None:
            gone = {target, *self.below(target)}
            self.run("forums.delete", target, deleteChildrenOrMove=-1)
            self.deleted.append({one: self.model.pop(one) for one in gone})

    @rule()
    def restore(self) -> None:
        """Take back the last delete, where nothing that it needs was taken or deleted since."""
        if not self.deleted:
            return
        back = self.deleted[-1]
        parents = {record["parentId"] for record in back.values()} - back.keys() - {None}
        taken = {record["externalId"] for record in self.model.values()} - {None}
        if parents <= self.model.keys() and taken.isdisjoint(record["externalId"] for record in back.values()):
            self.deleted.pop()
            about = self.run("events.list", type="forum.deleted", order="newest", limit=1000)["results"]
            self.run("events.restore", next(event["seq"] for event in about if event["resourceId"] in back))
            self.model |= back

    @rule(query=queries)
    def find(self, query: dict[str, Any]) -> None:
        asked = query | ({"under": self.pick(query["under"]) or 999} if "under" in query else {})
        wanted = self.look(asked)
        pages = -(-len(wanted) // asked["perPage"])
        found: list[dict[str, Any]] = []
        for page in range(1, max(pages, 1) + 2):
            answer = self.run("forums.list", **asked, page=page)
            assert (answer["totalResults"], answer["totalPages"]) == (len(wanted), max(pages, 1)), asked
            found += answer["results"]
        assert [one["id"] for one in found] == wanted, asked
        for one in found:
            count = one.pop("childCount", None)
            children = sum(record["parentId"] == one["id"] for record in self.model.values())
            assert count == (children if "include" in asked else None)

    def look(self, query: dict[str, Any]) -> list[int]:
        """Look at every record, and return the ids of those that a query wants, in its order."""
        below = self.below(query["under"]) if query.get("under") in self.model else set()
        wanted = [
            one
            for node, one in self.model.items()
            if query.get("name", one["name"]) == one["name"]
            and one["externalId"] in query.get("externalIds", (one["externalId"],))
            and one["type"] in query.get("type", TYPES)
            and ("under" not in query or node in below)
        ]
        down = query["sortDir"] == "desc"
        wanted.sort(key=lambda one: one["id"], reverse=down and query["sortBy"] == "id")  # ties are by id, whatever the direction
        if query["sortBy"] == "name":
            wanted.sort(key=lambda one: one["name"].casefold(), reverse=down)
        return [one["id"] for one in wanted]

    @invariant()
    def nothing_is_lost(self) -> None:
        answer = self.run("forums.list", perPage=1000)
        assert [one["id"] for one in answer["results"]] == sorted(self.model)


def test_lists_find_what_a_look_at_every_record_finds(new_settings: NewSettings) -> None:
    here = type("Here", (Finding,), {"new_settings": new_settings})
    bounded = settings(max_examples=settings().max_examples // 5, stateful_step_count=30)
    run_state_machine_as_test(here, settings=bounded)
