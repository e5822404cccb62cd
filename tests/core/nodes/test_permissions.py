"""Who may do what: permissions given, inherited, copied and kept, and groups that must exist."""

from typing import Any

import pytest

from tests.community import ADMINISTRATORS, GUESTS, MEMBERS, Community
from tests.fixture_types import Events, Run
from trellis.errors import Refused


def test_at_the_top_level_what_is_left_out_is_nobody(run: Run) -> None:
    made = run("categories.create", name="Skins", permissions={"view": "*", "add": [MEMBERS, MEMBERS, GUESTS]})
    assert made["permissions"] == {
        "view": "*",
        "read": [],
        "add": [GUESTS, MEMBERS],
        "download": [],
        "reply": [],
        "review": [],
    }


def test_under_a_parent_what_is_left_out_is_the_parents(run: Run, community: Community) -> None:
    news = run("forums.get", community.news)["permissions"]
    assert run("forums.get", community.releases)["permissions"] == news
    made = run("forums.create", name="Polls", parentId=community.news, permissions={"reply": "*"})
    assert made["permissions"] == news | {"reply": "*"}


def test_what_is_inherited_is_a_copy(run: Run, community: Community) -> None:
    run("forums.update", community.news, permissions={"view": []})
    assert run("forums.get", community.releases)["permissions"]["view"] == "*"


def test_a_flat_kind_inherits_from_nobody(run: Run, community: Community) -> None:
    assert set(map(str, run("calendars.create", name="Deadlines")["permissions"].values())) == {"[]"}


def test_an_empty_list_is_nobody_and_not_the_parents(run: Run, community: Community) -> None:
    assert run("forums.create", name="Polls", parentId=community.news, permissions={"view": []})["permissions"]["view"] == []


def test_a_move_takes_the_permissions_along(run: Run, community: Community) -> None:
    staff = run("forums.get", community.staff)["permissions"]
    assert run("forums.update", community.staff, parentId=community.news)["permissions"] == staff


def test_on_update_what_is_left_out_stays(run: Run, community: Community, events: Events) -> None:
    before = run("forums.get", community.news)["permissions"]
    after = run("forums.update", community.news, permissions={"attachments": "3,4"})["permissions"]
    assert after == before | {"attachments": [MEMBERS, ADMINISTRATORS]}
    assert events()[-1]["changed"] == ["permissions"]


def test_permissions_can_be_copied_from_a_node_of_the_same_kind(run: Run, community: Community) -> None:
    help_ = run("forums.get", community.help)["permissions"]
    assert run("forums.create", name="Polls", copyPermissionsFrom=community.help)["permissions"] == help_
    assert run("forums.update", community.staff, copyPermissionsFrom=str(community.help))["permissions"] == help_


def test_what_is_copied_goes_before_what_is_inherited_and_behind_what_is_given(run: Run, community: Community) -> None:
    made = run(
        "forums.create", name="Polls", parentId=community.news, copyPermissionsFrom=community.staff, permissions={"view": "*"}
    )
    assert made["permissions"] == run("forums.get", community.staff)["permissions"] | {"view": "*"}


def test_permissions_are_not_copied_from_a_node_that_does_not_exist(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"copyPermissionsFrom: there is no forum 999") as refused:
        run("forums.update", community.news, copyPermissionsFrom=999)
    assert [fault.field for fault in refused.value.faults] == ["copyPermissionsFrom"]


@pytest.mark.parametrize("operation", ["forums.create", "forums.update"])
def test_a_group_that_does_not_exist_is_named(run: Run, community: Community, operation: str) -> None:
    with pytest.raises(Refused) as refused:
        run(
            operation,
            community.news if "update" in operation else None,
            name="X",
            permissions={"view": [3, 98, 99], "add": [3], "reply": [98]},
        )
    told = {fault.field: fault.detail for fault in refused.value.faults}
    assert told == {
        "permissions.view": "permissions.view names groups that do not exist: 98, 99.",
        "permissions.reply": "permissions.reply names groups that do not exist: 98.",
    }
    assert refused.value.message == "INVALID_GROUP"


def test_a_number_that_no_database_holds_is_no_group(run: Run) -> None:
    with pytest.raises(Refused, match=r"permissions.view names groups that do not exist: 9223372036854775807"):
        run("forums.create", name="X", permissions={"view": [2**63 - 1]})
    with pytest.raises(Refused, match=r"^INVALID_VALUE"):
        run("forums.create", name="X", permissions={"view": [2**63]})


def test_the_readers_of_a_blog_must_exist_too(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^INVALID_GROUP: groups names groups that do not exist: 99"):
        run("blogs.update", community.notebook, groups=[3, 99])
    assert run("blogs.update", community.notebook, groups="*")["groups"] == "*"


@pytest.mark.parametrize(
    ("permissions", "says"),
    [
        ({"viwe": "*"}, "permissions has no option 'viwe'; the options are view, read, add, reply, attachments."),
        ({"rsvp": "*"}, "permissions has no option 'rsvp'"),
        ({"view": "all"}, "permissions 'view' must be"),
        ({"view": None}, "permissions 'view' must be"),
        ("*", "permissions must be an object"),
        (None, "permissions must be an object"),
    ],
)
def test_permissions_that_make_no_sense_are_refused(run: Run, permissions: Any, says: str) -> None:
    with pytest.raises(Refused) as refused:
        run("forums.create", name="X", permissions=permissions)
    assert says in refused.value.detail


def test_deleting_a_group_takes_it_out_of_every_nodes_permissions(run: Run, community: Community, events: Events) -> None:
    run("groups.delete", community.patrons)
    assert run("forums.get", community.betas)["permissions"]["read"] == []
    assert run("categories.get", community.skins)["permissions"]["download"] == [MEMBERS]
    assert run("categories.get", community.dark_skins)["permissions"]["download"] == [MEMBERS]
    assert run("blogs.get", community.notebook)["groups"] == [MEMBERS]
    event = events()[-1]
    assert event["before"]["name"] == "Patrons"
    assert sorted((one["resource"], one["id"], one["how"]) for one in event["touched"]) == [
        ("blogs", community.notebook, "changed"),
        ("categories", community.skins, "changed"),
        ("categories", community.dark_skins, "changed"),
        ("forums", community.betas, "changed"),
    ]


def test_deleting_a_group_leaves_equal_numbers_that_are_no_groups(run: Run, community: Community, events: Events) -> None:
    run("forums.update", community.help, theme=community.patrons, minContent=community.patrons, sitemapPriority=community.patrons)
    before = run("forums.get", community.help)
    run("groups.delete", community.patrons)
    assert run("forums.get", community.help) == before
    assert ("forums", community.help) not in [(one["resource"], one["id"]) for one in events()[-1]["touched"]]


def test_deleting_a_group_changes_the_time_of_change_of_those_that_named_it_only(
    run: Run, community: Community, clock: Any
) -> None:
    clock.move(hours=1)
    run("groups.delete", community.patrons)
    changed = {node["name"] for node in run("forums.list", updatedSince=clock.text)["results"]}
    assert changed == {"Betas"}


def test_a_deleted_group_cannot_be_named_again(run: Run, community: Community) -> None:
    run("groups.delete", community.patrons)
    with pytest.raises(Refused, match=r"^INVALID_GROUP"):
        run("forums.update", community.betas, permissions={"read": [community.patrons]})
    assert run("groups.create", name="Patrons")["id"] != community.patrons


def test_a_dry_run_says_which_nodes_name_a_group_and_changes_none(run: Run, community: Community) -> None:
    plan = run("groups.delete", community.patrons, dryRun=1)
    assert plan["deleted"] == {"count": 1, "ids": [community.patrons]}
    assert plan["changed"]["count"] == 4
    assert {"resource": "forums", "id": community.betas} in plan["changed"]["nodes"]
    assert run("forums.get", community.betas)["permissions"]["read"] == [community.patrons]
    assert run("groups.get", community.patrons)["name"] == "Patrons"
