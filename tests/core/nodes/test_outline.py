"""The operations that show a kind as a tree: levels with the numbers of children, ancestors, ids of children."""

import pytest

from tests.community import Community
from tests.fixture_types import Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused


def test_a_level_is_in_order_with_the_number_of_children_of_each(run: Run, community: Community) -> None:
    level = run("forums.level", parentId="root")
    names = [record["name"] for record in level["results"]]
    assert dict(zip(names, level["children"], strict=True)) == {"News": 2, "Help": 0, "Wiki": 0, "Staff": 0}
    assert level["results"][0] == run("forums.get", community.news)
    assert run("forums.level") == level
    assert [record["name"] for record in run("forums.level", parentId=community.news)["results"]] == ["Releases", "Interviews"]


def test_a_level_comes_in_pages(run: Run, community: Community) -> None:
    second = run("forums.level", parentId="root", perPage=3, page=2)
    assert ([record["name"] for record in second["results"]], second["children"]) == (["Staff"], [0])
    assert (second["totalResults"], second["totalPages"]) == (4, 2)


def test_the_level_of_a_flat_kind_is_its_list_in_order(run: Run, community: Community) -> None:
    level = run("calendars.level")
    assert ([record["name"] for record in level["results"]], level["children"]) == (["Meetups", "Holidays"], [0, 0])


def test_ancestors_lead_from_the_top_level_down_to_each_node(run: Run, community: Community) -> None:
    found = run("forums.ancestors", ids=[community.betas, community.help, 999])
    assert [node["id"] for node in found[community.betas]] == [community.news, community.releases, community.betas]
    assert found[community.help] == [{"id": community.help, "name": "Help", "parentId": None, "position": 1}]
    assert found[999] == []


def test_children_are_listed_in_their_order(run: Run, community: Community) -> None:
    run("forums.update", community.interviews, position=0)
    assert run("forums.children", community.news) == [community.interviews, community.releases]
    assert run("forums.children", community.betas) == []


@pytest.mark.parametrize("operation", ["forums.level", "forums.ancestors", "forums.children"])
def test_no_key_can_run_them(gate: Gate, operation: str) -> None:
    key = Actor("key", 1, "Plugin", gate.environment.grantable)
    with pytest.raises(Refused, match="NO_PERMISSION"):
        gate.run(Call(operation, key, target=1))
