"""Reverting a change, and what was changed since that stands in its way."""

import pytest

from tests.fixture_types import Run, RunForEvent
from trellis.core.undo import revert
from trellis.errors import Refused


def test_a_record_that_a_document_has_taken_over_since_stays_its_own(run: Run, do: RunForEvent) -> None:
    news = run("forums.create", name="Old", externalId="news")["id"]
    renamed = do("forums.update", news, name="News")
    document = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "news", "name": "News"}]}
    taken = do("structure.apply", document=document)
    with pytest.raises(Refused) as refused:
        run("events.restore", renamed)
    assert refused.value.message == "CHANGED_SINCE"
    assert refused.value.facts["differences"] == [{"field": "managedBy", "then": None, "now": "site"}]
    assert run("forums.get", news)["managedBy"] == "site"
    run("events.restore", taken)
    run("events.restore", renamed)
    assert (run("forums.get", news)["name"], run("forums.get", news)["managedBy"]) == ("Old", None)


def test_a_move_after_many_other_changes_stands_in_the_way(run: Run, do: RunForEvent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revert, "_PAGE", 10)
    first, *_ = [run("forums.create", name=name)["id"] for name in ("First", "Second", "Third", "Last")]
    moved = do("forums.update", first, position=1)
    renames = [{"operation": "forums.update", "id": first, "body": {"name": name}} for name in ("Other", "First") * 5]
    run("core.batch", operations=renames)
    again = do("forums.update", first, position=3)
    with pytest.raises(Refused) as refused:
        run("events.restore", moved)
    assert refused.value.facts["differences"] == [{"field": "position", "then": 1, "now": 3}]
    assert f"(by event {again})" in refused.value.detail
    assert run("forums.get", first)["position"] == 3
    run("events.restore", again)
    run("forums.update", first, name="New")
    renamed = do("forums.update", first, name="Newer")
    with pytest.raises(Refused, match=rf"by event {renamed}\)"):
        run("events.restore", moved)
