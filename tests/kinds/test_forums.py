"""What is a forum's own: its types, the redirect and the password."""

import json
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store.nodes import rows


def kept(gate: Gate, forum: int) -> dict[str, Any]:
    with gate.store.reading() as tx:
        node = rows.find(tx, "forums", forum)
    assert node is not None
    return node.fields


@pytest.mark.parametrize(
    ("sent", "type_"),
    [
        ("discussions", "discussions"),
        ("normal", "discussions"),
        ("questions", "questions"),
        ("qa", "questions"),
        ("category", "category"),
    ],
)
def test_a_type_is_taken_by_either_name(run: Run, sent: str, type_: str) -> None:
    assert run("forums.create", name="News", type=sent)["type"] == type_


def test_an_unknown_type_has_its_own_refusal(run: Run) -> None:
    with pytest.raises(Refused, match="INVALID_TYPE: type must be one of discussions, questions, category, redirect") as refused:
        run("forums.create", name="News", type="club")
    assert refused.value.code == "1F363/4"


@pytest.mark.parametrize("address", [{}, {"redirectUrl": None}, {"redirect_url": ""}])
def test_a_redirect_needs_an_address(run: Run, address: dict[str, Any], events: Events) -> None:
    with pytest.raises(Refused, match=r"^NO_REDIRECT_URL: redirectUrl is required when type is redirect") as refused:
        run("forums.create", name="Wiki", type="redirect", **address)
    assert refused.value.code == "1F363/3"
    assert [fault.field for fault in refused.value.faults] == ["redirectUrl"]
    assert events() == []


def test_an_address_that_is_none_is_told_as_that_only(run: Run) -> None:
    with pytest.raises(Refused, match="redirectUrl must be an http or https URL") as refused:
        run("forums.create", name="Wiki", type="redirect", redirectUrl="javascript:alert(1)")
    assert [fault.message for fault in refused.value.faults] == ["INVALID_VALUE"]


def test_a_forum_that_has_an_address_can_become_a_redirect(run: Run, community: Community) -> None:
    run("forums.update", community.help, redirectUrl="https://help.example/")
    assert run("forums.update", community.help, type="redirect")["type"] == "redirect"


def test_a_redirect_cannot_lose_its_address(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^NO_REDIRECT_URL"):
        run("forums.update", community.wiki, redirectUrl=None)
    run("forums.update", community.wiki, redirectUrl=None, type="category")


def test_a_forum_with_children_cannot_become_a_redirect(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match="type redirect allows no children, but this forum has 2: move or delete them first"):
        run("forums.update", community.news, type="redirect", redirectUrl="https://news.example/")
    assert run("forums.get", community.news)["type"] == "discussions"


def test_nothing_can_be_made_under_a_redirect_nor_moved_there(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=f"^INVALID_PARENT: parentId: forum {community.wiki} is a redirect"):
        run("forums.create", name="Page", parentId=community.wiki)
    with pytest.raises(Refused, match=f"^INVALID_PARENT: parentId: forum {community.wiki} is a redirect"):
        run("forums.update", community.help, parentId=community.wiki)


def test_children_of_a_deleted_forum_do_not_go_to_a_redirect(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=f"^INVALID_TARGET: .* forum {community.wiki} is a redirect and cannot have children"):
        run("forums.delete", community.news, deleteChildrenOrMove=community.wiki)


def test_a_password_is_kept_as_an_argon2_digest_and_seen_nowhere(run: Run, gate: Gate, events: Events) -> None:
    made = run("forums.create", name="Staff", password="open sesame")
    assert made["passwordProtected"] is True
    assert "password" not in made
    assert str(kept(gate, made["id"])["password"]).startswith("$argon2id$")
    run("forums.update", made["id"], password="swordfish")
    everything = json.dumps([events(), run("forums.list"), run("forums.get", made["id"]), kept(gate, made["id"])])
    assert "sesame" not in everything
    assert "swordfish" not in everything
    assert "argon2" not in json.dumps(events())


def test_a_new_password_is_recorded_as_a_change_without_itself(run: Run, events: Events) -> None:
    forum = run("forums.create", name="Staff")["id"]
    run("forums.update", forum, password="one")
    run("forums.update", forum, password="two")
    first, second = events()[1:]
    assert set(first["changed"]) == {"passwordProtected", "password"}
    assert second["changed"] == ["password"]
    assert second["before"]["passwordProtected"] is second["after"]["passwordProtected"] is True


def test_the_same_password_again_changes_nothing(run: Run, gate: Gate, events: Events) -> None:
    forum = run("forums.create", name="Staff", password="open sesame")["id"]
    digest = kept(gate, forum)["password"]
    run("forums.update", forum, password="open sesame")
    assert kept(gate, forum)["password"] == digest
    assert len(events()) == 1


@pytest.mark.parametrize("none", [None, ""])
def test_a_password_can_be_taken_away(run: Run, gate: Gate, none: str | None) -> None:
    forum = run("forums.create", name="Staff", password="open sesame")["id"]
    assert run("forums.update", forum, password=none)["passwordProtected"] is False
    assert kept(gate, forum)["password"] is None


def test_a_password_stays_when_other_things_change(run: Run, gate: Gate) -> None:
    forum = run("forums.create", name="Staff", password="open sesame")["id"]
    digest = kept(gate, forum)["password"]
    assert run("forums.update", forum, name="Team")["passwordProtected"] is True
    assert kept(gate, forum)["password"] == digest


def test_a_description_is_sanitised_on_the_way_in(run: Run) -> None:
    made = run("forums.create", name="News", description='<p onclick="x()">Hi <b>you</b></p><script>alert(1)</script>')
    assert made["description"] == "<p>Hi <b>you</b></p>"
