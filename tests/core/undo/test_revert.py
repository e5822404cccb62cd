"""Reverting a change, and what was changed since that stands in its way."""

import pytest

from tests.fixture_types import Run, RunForEvent
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
