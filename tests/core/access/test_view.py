"""What a group may do, node by node."""

import pytest

from tests.community import GUESTS, Community
from tests.fixture_types import Run
from trellis.errors import Refused


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


def test_an_unknown_kind_or_right_is_ignored_and_a_page_past_the_end_is_the_last(run: Run, community: Community) -> None:
    access = run("access.view", group=GUESTS, resource="nonsense", right="nonsense", page=99)
    assert (access["resource"], access["right"], access["page"]) == (access["resources"][0], None, 1)


def test_a_group_that_does_not_exist_is_refused(run: Run) -> None:
    with pytest.raises(Refused, match="INVALID_ID"):
        run("access.view", group=999)
