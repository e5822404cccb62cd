"""What scripts say, in the language of the page."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.admin.conftest import MakeVisitor
from trellis.admin.times import Clock
from trellis.languages import ENGLISH
from trellis.languages.catalogues import load_language


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_texts_of_scripts_are_below_the_digest_of_all_files(german: Path, visitor: MakeVisitor) -> None:
    somebody = visitor()
    script = somebody.get("/sign-in").text.split('src="/admin/static/')[1].partition("/")[0]
    texts = somebody.get(f"/static/{script}/texts-de.json")
    assert texts.json() == {"Copied.": "Kopiert."}
    assert texts.headers["content-type"] == "application/json"
    assert "immutable" in texts.headers["cache-control"]
    assert somebody.get(f"/static/{script}/texts-xx.json").status_code == 404
    (german / "scripts.po").write_text('msgid "Copied."\nmsgstr "In der Zwischenablage."\n', encoding="utf-8")
    assert script not in visitor().get("/sign-in").text


@pytest.mark.parametrize(
    ("seconds", "english", "in_german"),
    [
        (200, "3 minutes ago", "vor 3 Minuten"),
        (60, "1 minute ago", "vor 1 Minute"),
        (-90 * 86_400, "in 90 days", "in 90 Tagen"),
        (-365 * 86_400, "in 1 year", "in 1 Jahr"),
        (5, "just now", "just now"),
    ],
)
def test_how_far_away_a_time_is(german: Path, seconds: float, english: str, in_german: str) -> None:
    assert ENGLISH.age(seconds) == english
    assert load_language("de", german.parent).age(seconds) == in_german


def test_dates_are_written_as_the_language_has_them(german: Path) -> None:
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    other = load_language("de", german.parent)
    assert [ENGLISH.day(at), ENGLISH.date(at), ENGLISH.long_date(at)] == ["29 Mar", "29 Mar 2026", "Sunday, 29 March 2026"]
    assert [other.day(at), other.date(at), other.long_date(at)] == ["29. März", "29. März 2026", "Sonntag, 29. März 2026"]
    assert Clock("Europe/Berlin", "Europe/Berlin", other).full("2026-03-29T01:30:00Z") == "29. März 2026, 03:30 UTC+2"
