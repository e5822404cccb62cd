"""What an event has changed, as a person reads it."""

from typing import Any

from trellis.admin.events.diff import Change, diff_texts, event_changes
from trellis.kinds import KINDS

GROUPS = {2: "Guests", 3: "Members", 4: "Administrators"}


def _changes(before: Any, after: Any, changed: tuple[str, ...] = (), resource: str = "forums") -> dict[str, Change]:
    event = {"resource": resource, "before": before, "after": after, "changed": changed}
    return {change.label: change for change in event_changes(event, KINDS, GROUPS)}


def test_only_what_differs_is_told() -> None:
    before = {"id": 1, "name": "News", "url": "/a", "path": "News", "type": "questions", "updatedAt": "1"}
    found = _changes(before, before | {"name": "Olds", "url": "/b", "path": "Olds"}, ("name", "url", "path"))
    assert list(found) == ["Name"]
    assert found["Name"].parts == (("removed", "News"), ("added", "Olds"))


def test_a_move_tells_the_path() -> None:
    before = {"parentId": None, "path": "A", "position": 0}
    found = _changes(before, {"parentId": 3, "path": "B > A", "position": 2}, ("parentId", "path", "position"))
    assert list(found) == ["Parent id", "Path", "Position"]
    assert found["Parent id"].parts == (("added", "3"),)


def test_permissions_are_told_by_the_names_of_groups() -> None:
    before = {"permissions": {"view": "*", "read": [2, 3], "add": [4], "reply": [9]}}
    after = {"permissions": {"view": [3], "read": [3, 4], "add": [4], "reply": []}}
    view, read, reply = _changes(before, after, ("permissions",))["Permissions"].rows
    assert (view.label, view.removed, view.added) == ("View", ("every group",), ("Members",))
    assert (read.removed, read.added) == (("Guests",), ("Administrators",))
    assert (reply.removed, reply.added) == (("group 9, since deleted",), ())


def test_the_groups_of_a_blog_are_told_by_their_names() -> None:
    found = _changes({"groups": "*"}, {"groups": [3]}, ("groups",), "blogs")
    assert (found["Who may read it"].removed, found["Who may read it"].added) == (("every group",), ("Members",))


def test_what_was_made_and_what_was_deleted_is_told_whole_but_for_what_is_empty() -> None:
    record = {"id": 7, "name": "Sync", "grants": ["forums.list"], "addresses": [], "rateLimit": None, "logRequests": True}
    assert list(_changes(None, record, resource="keys")) == ["Name", "Grants", "Log requests"]
    assert _changes(record, None, resource="keys")["Grants"].removed == ("forums.list",)


def test_a_secret_is_only_named() -> None:
    assert _changes({"name": "A"}, {"name": "A"}, ("password",))["Password"].secret


def test_a_long_text_is_compared_word_by_word() -> None:
    old = "What this forum is for, how to write in it, and what not to do here at any time of the day or the night."
    parts = diff_texts(old, old.replace("not ", "").replace("day", "hour"))
    assert ("removed", "day") in parts
    assert ("added", "hour") in parts
    assert "".join(text for tone, text in parts if tone != "added") == old.replace(", and", ", and")


def test_an_unchanged_stretch_is_left_out_in_its_middle() -> None:
    old = "a word " * 200
    parts = diff_texts(old + "end", old + "END")
    assert sum(len(text) for _, text in parts) < 300
    assert parts[-2:] == (("removed", "end"), ("added", "END"))


def test_a_huge_text_is_not_compared_but_cut() -> None:
    parts = diff_texts("a " * 50_000, "b " * 50_000)
    assert [tone for tone, _ in parts] == ["removed", "added"]
    assert all(len(text) < 2100 for _, text in parts)


def test_equal_texts_have_no_difference() -> None:
    assert diff_texts("a", "a") == (("same", "a"),)
