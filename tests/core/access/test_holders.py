"""Which keys may do something."""

import pytest

from tests.community import Community
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.access import check, verdict
from trellis.core.bounds import Bound
from trellis.errors import Refused


def names(run: Run, **asked: object) -> list[str]:
    return [key["name"] for key in run("access.keys", **asked)["results"]]


def test_it_lists_those_that_may_on_this_node_and_no_others(run: Run, key: MakeKey, community: Community, clock: Clock) -> None:
    here = {"forums.delete": {"under": [f"forums:{community.news}"]}}
    key("forums.delete", name="Everywhere")
    key("forums.delete", name="Within news", bounds=here)
    key("forums.delete", name="Proposes", bounds={"forums.delete": {"level": "propose"}})
    key("forums.delete", name="Ended", expires="1h")
    key("forums.delete", name="Revoked")
    key("forums.list", name="Reads")
    run("keys.revoke", 5)
    clock.move(hours=2)

    assert names(run, operation="forums.delete") == ["Everywhere", "Within news"]
    assert names(run, operation="forums.delete", id=community.releases) == ["Everywhere", "Within news"]
    assert names(run, operation="forums.delete", id=community.help) == ["Everywhere"]
    assert names(run, operation="forums.delete", asDryRun=True) == ["Everywhere", "Within news", "Proposes"]
    assert names(run, operation="core.hello") == ["Everywhere", "Within news", "Proposes", "Reads"]


def test_pages_and_however_many_there_are(run: Run, key: MakeKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_AT_ONCE", 2)
    for number in range(5):
        key("forums.list", name=f"Key {number}")
    page = run("access.keys", operation="forums.list", perPage=2, page=2)
    assert [one["name"] for one in page["results"]] == ["Key 2", "Key 3"]
    assert (page["totalResults"], page["totalPages"]) == (5, 3)


def test_only_the_keys_of_the_page_are_described(run: Run, key: MakeKey, monkeypatch: pytest.MonkeyPatch) -> None:
    described = list[Bound]()

    def note(bound: Bound) -> str:
        described.append(bound)
        return ""

    monkeypatch.setattr(verdict, "describe_bound", note)
    for number in range(5):
        key("forums.list", name=f"Key {number}")
    page = run("access.keys", operation="forums.list", perPage=2, page=2)
    assert [one["detail"] for one in page["results"]] == ["Yes: it has been granted, without an expiry."] * 2
    assert len(described) == 2


def test_what_cannot_be_asked_is_refused(run: Run, key: MakeKey) -> None:
    for asked in ({}, {"operation": "keys.create"}, {"operation": "forums.get", "id": 999}):
        with pytest.raises(Refused):
            run("access.keys", **asked)
