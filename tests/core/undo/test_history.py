"""What is kept for undo, as the operations of the panel tell it: states of events, later events, names of what is gone."""

from tests.community import Community
from tests.fixture_types import Run


def _last(run: Run) -> int:
    return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])


def test_an_event_says_whether_it_can_be_undone_and_by_what_it_was(run: Run, community: Community) -> None:
    run("forums.update", community.help, name="Aid")
    seq = _last(run)
    assert run("events.get", seq)["undo"] == {"kept": True, "undoneBy": None, "open": True}
    run("events.restore", seq)
    assert run("events.get", seq)["undo"] == {"kept": True, "undoneBy": seq + 1, "open": False}


def test_undo_does_not_apply_to_what_was_created_nor_to_other_resources(run: Run, community: Community) -> None:
    run("keys.create", name="Plugin")
    assert [event["undo"] for event in run("events.search", limit=2)["results"]] == [None, None]


def test_a_copy_can_be_undone_though_it_changed_nothing(run: Run, community: Community) -> None:
    run("forums.copy", community.news, withChildren=True)
    assert run("events.get", _last(run))["undo"]["open"]


def test_later_events_of_the_record_are_listed_as_far_as_they_can_be_undone(run: Run, community: Community) -> None:
    run("forums.update", community.help, name="Aid")
    first = _last(run)
    run("forums.update", community.news, name="Olds")
    run("forums.update", community.help, name="Succour")
    run("forums.update", community.help, name="Relief")
    run("events.restore", first + 3)
    assert [event["seq"] for event in run("events.later", first)] == [first + 4, first + 2]


def test_the_last_state_of_a_record_names_what_is_gone(run: Run, community: Community) -> None:
    assert run("events.last_state", resource="forums", resourceId=community.help) is None
    run("forums.delete", community.help)
    found = run("events.last_state", resource="forums", resourceId=community.help)
    assert found == {"event": _last(run), "how": "deleted", "name": "Help"}


def test_the_names_of_deleted_records_come_with_their_parents(run: Run, community: Community) -> None:
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    names = run("events.deleted_names", _last(run), ids=[community.betas, community.help])
    assert names == {community.betas: {"parentId": community.releases, "name": "Betas"}}


def test_the_lists_that_named_a_group_are_counted(run: Run, community: Community) -> None:
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    named = run("events.lists_naming", _last(run), ids=[community.moderators, community.patrons, 999])
    assert named[community.moderators] == {"lists": ["add"], "count": 4}
    assert named[community.patrons] == {"lists": ["read"], "count": 1}
    assert named[999] == {"lists": [], "count": 0}
