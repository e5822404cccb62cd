"""What an event has changed, as a person reads it."""

from itertools import pairwise
from random import Random
from typing import Any

from trellis.admin.events.diff import Effort, MemberChange, diff_texts, event_changes
from trellis.kinds import KINDS

GROUPS = {2: "Guests", 3: "Members", 4: "Administrators"}


def _changes(before: Any, after: Any, changed: tuple[str, ...] = (), resource: str = "forums") -> dict[str, MemberChange]:
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


def test_signs_and_names_for_programs_are_told_in_words() -> None:
    after = {
        "role": "structure-editor",
        "kinds": ["forums", "categories"],
        "mailedAlarms": ["*"],
        "events": ["*", "forums.created"],
        "name": "*",
    }
    found = _changes(None, after, resource="administrators")
    told = {label: change.added or change.parts for label, change in found.items()}
    assert told == {
        "Role": (("added", "Structure editor"),),
        "Kinds": ("Forums", "Download categories"),
        "Mailed alarms": ("Every alarm",),
        "Events": ("Every event", "forums.created"),
        "Name": (("added", "*"),),
    }
    fewer = _changes({"mailedAlarms": ["*"]}, {"mailedAlarms": ["widened-key"]}, ("mailedAlarms",), "administrators")
    assert fewer["Mailed alarms"].added == ("A key may do more",)


def test_a_list_with_only_another_order_or_fewer_repetitions_is_told_whole() -> None:
    before = {"events": ["a", "b", "b"], "addresses": ["c", "d"]}
    found = _changes(before, {"events": ["a", "b"], "addresses": ["d", "c"]}, ("events", "addresses"), "webhooks")
    assert (found["Events"].removed, found["Events"].added) == (("a, b, b",), ("a, b",))
    assert (found["Addresses"].removed, found["Addresses"].added) == (("c, d",), ("d, c",))


def test_another_group_of_the_same_name_is_told() -> None:
    event = {"resource": "forums", "before": {"permissions": {"view": [5]}}, "after": {"permissions": {"view": [6]}}}
    (change,) = event_changes(event | {"changed": ("permissions",)}, KINDS, {5: "Growers", 6: "Growers"})
    assert (change.rows[0].removed, change.rows[0].added) == (("Growers",), ("Growers",))


def test_what_was_made_and_what_was_deleted_is_told_whole_but_for_what_is_empty() -> None:
    record = {"id": 7, "name": "Sync", "grants": ["forums.list"], "addresses": [], "rateLimit": None, "logRequests": True}
    assert list(_changes(None, record, resource="keys")) == ["Name", "Grants", "Log requests"]
    assert _changes(record, None, resource="keys")["Grants"].removed == ("forums.list",)


def test_a_secret_is_only_named() -> None:
    assert _changes({"name": "A"}, {"name": "A"}, ("password",))["Password"].secret


def test_a_long_text_is_compared_word_by_word() -> None:
    old = "What this forum is for, how to write in it, and what not to do here at any time of the day or the night."
    parts = diff_texts(old, old.replace("not ", "").replace("day", "hour"), Effort())
    assert ("removed", "day") in parts
    assert ("added", "hour") in parts
    assert "".join(text for tone, text in parts if tone != "added") == old.replace(", and", ", and")


def test_the_space_beside_a_word_that_stays_is_not_marked() -> None:
    text = "What this forum is for, how to write in it, and what not to do here."
    for old, new, parts in (
        (text, text.replace("forum", "board"), [("removed", "forum"), ("added", "board")]),
        (text + " Never", text + " Never ever", [("added", " ever")]),
        (text + " Never ever", text + " Never", [("removed", " ever")]),
        (text + "\nNever", text + " Never", [("removed", "\n"), ("added", " ")]),
    ):
        compared = diff_texts(old, new, Effort())
        assert [part for part in compared if part[0] != "same"] == parts
        assert "".join(part for tone, part in compared if tone != "added") == old
        assert "".join(part for tone, part in compared if tone != "removed") == new


def test_an_unchanged_stretch_is_left_out_in_its_middle() -> None:
    old = "a word " * 200
    parts = diff_texts(old + "end", old + "END", Effort())
    assert sum(len(text) for _, text in parts) < 300
    assert parts[-2:] == (("removed", "end"), ("added", "END"))


def test_a_huge_text_is_not_compared_but_cut() -> None:
    parts = diff_texts("a " * 50_000, "b " * 50_000, Effort())
    assert [tone for tone, _ in parts] == ["removed", "added"]
    assert all(len(text) < 2100 for _, text in parts)


def test_texts_of_few_words_that_come_often_are_not_compared() -> None:
    """It would take the cube of how often they come: minutes, in which the panel answers nobody."""
    old, new = "a. " * 900, "b. " * 900
    assert diff_texts(old, new, Effort()) == (
        ("removed", f"{old[:2000]} … (2,700 characters)"),
        ("added", f"{new[:2000]} … (2,700 characters)"),
    )


def test_however_many_texts_a_page_compares_it_takes_no_longer() -> None:
    effort, dice = Effort(), Random(1)  # noqa: S311  # no secret
    texts = [" ".join(dice.choices("abcdefgh", k=200)) for _ in range(100)]
    compared = [diff_texts(old, new, effort) for old, new in pairwise(texts)]
    assert len(compared[0]) > 2 == len(compared[-1])


def test_a_description_of_a_thousand_words_is_compared_word_by_word() -> None:
    """Words come as often as in any language: the n-th most frequent one 1/n times as often as the first."""
    dice = Random(1)  # noqa: S311  # no secret
    words = dice.choices([f"word{rank}" for rank in range(1, 2_000)], [1 / rank for rank in range(1, 2_000)], k=1_200)
    new = [*words[:100], "inserted", *words[100:600], *words[640:1_100], "changed", *words[1_101:]]
    parts = diff_texts(" ".join(words), " ".join(new), Effort())
    assert [text.strip() for tone, text in parts if tone == "added"] == ["inserted", "changed"]
    assert [len(text.split()) for tone, text in parts if tone == "removed"] == [40, 1]


def test_equal_texts_have_no_difference() -> None:
    assert diff_texts("a", "a", Effort()) == (("same", "a"),)
