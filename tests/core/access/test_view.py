"""What a group may do, node by node."""

from dataclasses import replace

import pytest

from tests.community import GUESTS, Community
from tests.fixture_types import Run
from tests.memory_meter import MemoryMeter
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store import nodes
from trellis.store.counters import next_numbers
from trellis.store.engine import Transaction
from trellis.store.nodes import outline


def test_it_lists_the_nodes_in_which_a_group_has_any_right_and_counts_each_right(run: Run, community: Community) -> None:
    access = run("access.view", group=community.patrons, resource="forums")
    assert [record["name"] for record in access["results"]] == ["News", "Releases", "Betas", "Interviews", "Help"]
    rights = {right["name"]: right["nodes"] for right in access["rights"]}
    assert rights == {"view": 5, "read": 5, "add": 1, "reply": 1, "attachments": 1}
    assert (access["totalResults"], access["total"], access["right"]) == (5, 7, None)


def test_each_right_is_held_by_name_or_because_everyone_has_it(run: Run, community: Community) -> None:
    access = run("access.view", group=community.patrons, resource="forums")
    held = dict(zip((record["id"] for record in access["results"]), access["access"], strict=True))
    assert held[community.betas][:2] == ["everyone", "by name"]
    assert held[community.news][2:4] == ["", ""]


def test_one_right_and_pages(run: Run, community: Community) -> None:
    access = run("access.view", group=community.patrons, resource="forums", right="read", perPage=2, page=3)
    assert [record["name"] for record in access["results"]] == ["Help"]
    assert (access["right"], access["totalResults"], access["totalPages"]) == ("read", 5, 3)


def test_fields_that_name_groups_are_rights_too(run: Run, community: Community) -> None:
    access = run("access.view", group=community.patrons, resource="blogs")
    assert [right["name"] for right in access["rights"]] == ["groups"]
    assert (access["results"][0]["name"], access["access"]) == ("Notebook", [["by name"]])


def test_the_first_kind_and_any_right_unless_others_are_named(run: Run, community: Community) -> None:
    access = run("access.view", group=GUESTS)
    assert (access["resource"], access["right"]) == (access["resources"][0], None)
    assert run("access.view", group=GUESTS, resource="", right="") == access


@pytest.mark.parametrize("sent", [{"resource": "forum"}, {"resource": "groups"}, {"right": "raed"}, {"right": "download"}])
def test_what_is_no_kind_and_no_right_of_one_is_refused_by_name(run: Run, community: Community, sent: dict[str, str]) -> None:
    """Nobody is told of one right who has asked for another."""
    with pytest.raises(Refused, match="INVALID_VALUE") as refused:
        run("access.view", group=GUESTS, **({"resource": "forums"} | sent))
    assert [fault.field for fault in refused.value.faults] == list(sent)


def test_a_page_past_the_end_is_empty(run: Run, community: Community) -> None:
    access = run("access.view", group=community.patrons, resource="forums", perPage=2, page=4)
    assert (access["page"], access["results"], access["access"], access["totalResults"], access["totalPages"]) == (4, [], [], 5, 3)


def test_a_group_that_does_not_exist_is_refused(run: Run) -> None:
    with pytest.raises(Refused, match="INVALID_ID"):
        run("access.view", group=999)


@pytest.mark.slow
def test_very_many_long_lists_of_groups_are_examined_some_at_a_time(
    gate: Gate, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As each may name 2,000 groups, and no two need be alike. Here ten at a time are of ninety, not a hundred of any number."""
    monkeypatch.setattr(outline, "AT_ONCE", 10)
    groups = list(range(10_000, 10_500))

    def insert(tx: Transaction) -> None:
        forum = nodes.find_by_ids(tx, "forums", (community.help,))[community.help]
        for number in range(90):
            permissions = {option: [*groups[: 250 + 2 * number], community.patrons] for option in forum.permissions}
            made = replace(forum, id=next_numbers(tx, "forums", 1)[0], permissions=permissions)
            nodes.insert(tx, "forums", made)

    gate.store.write(insert).result()
    with MemoryMeter() as meter:
        found = run("access.view", group=community.patrons, resource="forums", right="attachments", perPage=1)
    assert found["totalResults"] >= 90
    assert meter.peak < 3 * 2**20, f"{meter.peak:,}"
