"""The overview says first whether anything is wrong."""

import re
from datetime import timedelta
from types import SimpleNamespace

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.webhooks.rows import update_webhook
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.gate import Gate
from trellis.store import last_runs

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def _first(admin: Visitor) -> str:
    """Return what stands first on the overview."""
    found = re.search(r'<section class="card concerns.*?</section>', admin.get("").text, re.DOTALL)
    assert found is not None
    return page_text(SimpleNamespace(text=found[0])).strip()


def test_it_is_calm_while_nothing_is_wrong(admin: Visitor) -> None:
    said = _first(admin)
    assert said.startswith("Nothing is failing")
    assert "You have no second factor" in said
    assert "trellis backup has not been run yet" in said


def test_a_backup_is_missed_after_a_week_and_also_if_the_last_one_was_made_by_a_clock_that_was_ahead(
    admin: Visitor, gate: Gate, clock: Clock
) -> None:
    def tell(days: int) -> str:
        """Return what stands first if the last backup was made that many days ago."""
        made = int((clock() - timedelta(days=days)).timestamp() * 1000)
        gate.store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, made)).result()
        return _first(admin)

    assert "The last backup was made 8 days ago." in tell(8)
    assert "backup" not in tell(6)
    assert "The last backup seems to be from the future" in tell(-3)


def test_what_needs_somebody_stands_first_with_where_to_go(
    admin: Visitor, run: Run, gate: Gate, key: MakeKey, clock: Clock
) -> None:
    key("forums.list", name="Soon", expires="3d")
    key("forums.list", name="Later", expires="20d")
    run("webhooks.create", url="https://example.com/hook", events=["*"], description="Search index")
    update_webhook(gate, 1, failing_since=clock.text)
    page = admin.get("").text
    said = _first(admin)
    assert said.startswith("2 things need your attention 1 webhook is failing. See which")
    assert "The key Soon expires in 3 days." in said
    assert "Later" not in said
    assert 'href="/admin/keys/1">See it' in page


def test_a_key_for_trying_is_no_key_to_remind_of(admin: Visitor, key: MakeKey) -> None:
    key("forums.list", name="Try it: forums.list", expires="1h")
    assert _first(admin).startswith("Nothing is failing")
    page = page_text(admin.get(""))
    assert "1 key made in the last hour expires within the next one, and needs no attention." in page
    assert "No other key expires within 30 days" in page
    assert "No key expires" not in page
    key("forums.list", name="Soon", expires="3d")
    page = page_text(admin.get(""))
    assert "1 key made in the last hour expires within the next one" in page
    assert "1 key expires within 30 days" in page


def test_of_many_keys_that_end_soon_no_number_is_told_that_is_too_small(admin: Visitor, key: MakeKey) -> None:
    for number in range(4):
        key("forums.list", name=f"Soon {number}", expires="3d")
    assert "in 3 days, and 3 others within a week." in _first(admin)
    for number in range(4):
        key("forums.list", name=f"Too {number}", expires="4d")
    assert "in 3 days, and others within a week." in _first(admin)
