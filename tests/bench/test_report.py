"""Figures become tables, and the tables of the document are those of the figures beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.before import compare
from bench.cases import CASES, OURS, PEER, TARGETS
from bench.document import DOCUMENT, KEPT, told
from bench.report import markdown, tables, verdict

_NAMES = {case.name for case in CASES}


def _rep(rate: float) -> dict[str, float]:
    return {"rate": rate, "p50": 1000.0, "p99": 3000.0, "cpu": 25.0, "memory": 100 * 2**20}


@pytest.fixture
def figures() -> dict[str, Any]:
    """Figures of one case and one operation."""
    return {
        "mode": "quick",
        "date": "2026-01-15",
        "machine": {
            "cpu": "Some CPU",
            "cores": 2,
            "usable": 2,
            "governor": "performance",
            "memory": "24 GiB",
            "kernel": "Linux 6",
            "system": "Debian",
            "disk": "ext4",
            "python": "CPython 3.13",
            "sqlite": "3.40.1",
            "wrk": "4.1.0",
            "load": 0.1,
            "packages": {"uvicorn": "1.0"},
            "commit": "abc",
        },
        "http": {
            "read-hot": {OURS: [_rep(9000), _rep(8500)], "hello": [_rep(10_000), _rep(10_000)], PEER: [_rep(2000), _rep(2000)]}
        },
        "before": {"commit": "def", "shares": {"read-hot": 0.9}},
        "paced": {
            "paced-hot": {"rate": 5000, "reps": {OURS: [{"p50": 500.0, "p99": 4000.0}], "hello": [{"p50": 200.0, "p99": 1000.0}]}}
        },
        "growth": [
            {"engine": "sqlite", "shape": "wide", "forums": 1000, "operation": "move", "median": 100.0, "samples": 9},
            {"engine": "sqlite", "shape": "wide", "forums": 1_000_000, "operation": "move", "median": 150.0, "samples": 9},
        ],
        "start": {"version": [{"cpu": 0.09, "yardstick": 0.06}, {"cpu": 0.1, "yardstick": 0.06}, {"cpu": 0.3, "yardstick": 0.06}]},
        "pairs": [{"engine": "sqlite", "pair": "tree", "reps": [{"one": 0.4, "other": 0.2}, {"one": 0.5, "other": 0.1}]}],
        "workers": [{"forums": 1_000_000, "memory": 250 * 2**20}],
        "plots": [{"file": "http.svg", "title": "Rates"}],
    }


def test_targets_say_what_is_reached_and_by_how_much_not(figures: dict[str, Any]) -> None:
    reached = tables(figures)[0].rows
    assert ("read one, hot, to hello", "≥ 0.70", "0.88", "reached") in reached
    assert ("p99 of hot reads at half of the best rate, to hello's at that rate", "≤ 2.5 ×", "4.0 ×", "over by 60%") in reached
    assert ("move, 1,000,000 to 1,000; worst: wide, SQLite", "≤ 1.3 ×", "1.50 ×", "over by 15%") in reached
    assert ("tree of 10,000, to 10 list pages of 1,000; SQLite", "≤ 3 ×", "3.50 ×", "over by 17%") in reached
    assert ("memory of a worker, most: read one, hot", "< 140 MiB", "100 MiB", "reached") in reached
    assert ("memory of a worker, over 1,000,000 forums", "< 200 MiB", "250 MiB", "over by 25%") in reached
    assert ("trellis --version, processor time to `import typer`", "≤ 3 ×", "1.67 ×", "reached") in reached


def test_a_case_is_one_row_with_its_ratios(figures: dict[str, Any]) -> None:
    assert tables(figures)[1].rows == (("read one, hot", "8,750", "1.00", "3.00", "25.0", "100", "0.88", "0.90", "4.4 ×"),)


def test_a_load_at_a_fixed_rate_is_a_row_for_each_contestant(figures: dict[str, Any]) -> None:
    (table,) = (table for table in tables(figures) if table.title == "At a fixed rate")
    assert table.rows == (("hot reads: trellis", "5,000", "0.50", "4.00"), ("hot reads: hello", "5,000", "0.20", "1.00"))


def test_what_is_worse_than_before_by_more_than_a_machine_drifts_is_named(
    figures: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.before.KEPT", tmp_path)
    assert compare(figures) == []
    before = {**figures, "http": {"read-hot": {OURS: [_rep(9900)], "hello": [_rep(9000)]}}}
    (tmp_path / "figures.json").write_text(json.dumps(before))
    assert compare(figures) == ["read one, hot by 20%"]
    assert figures["before"] == {"commit": "abc", "shares": {"read-hot": 1.1}}
    figures["machine"] = {**figures["machine"], "cpu": "Another CPU"}
    assert compare(figures) == []


def test_a_pair_is_one_row_with_its_ratio(figures: dict[str, Any]) -> None:
    (table,) = (table for table in tables(figures) if table.title == "Side by side")
    assert table.rows == (("tree of 10,000; SQLite", "450", "10 list pages of 1,000", "150", "3.50 ×"),)


def test_growth_is_a_column_for_each_size(figures: dict[str, Any]) -> None:
    table = tables(figures)[-1]
    assert table.columns == ("operation", "1,000", "1,000,000", "last to first")
    assert table.rows == (("move", "100", "150", "1.50 ×"),)


def test_what_was_not_measured_has_no_table(figures: dict[str, Any]) -> None:
    del figures["http"]
    assert [table.title.split()[0] for table in tables(figures)] == ["To", "At", "Starts", "Side", "Growth"]


@pytest.mark.parametrize(
    ("measured", "bound", "at_most", "said"),
    [
        (0.8, 0.8, False, "reached"),
        (0.6, 0.8, False, "short by 25%"),
        (3.0, 3.0, True, "reached"),
        (6.0, 3.0, True, "over by 100%"),
    ],
)
def test_a_verdict_says_by_how_much(measured: float, bound: float, at_most: bool, said: str) -> None:
    assert verdict(measured, bound, at_most=at_most) == said


def test_markdown_describes_the_machine_and_names_the_plots(figures: dict[str, Any]) -> None:
    text = markdown(figures)
    assert "Some CPU, 2 cores, governor performance" in text
    assert "![Rates](benchmarks/http.svg)" in text
    assert "shared one core" not in text
    figures["machine"]["usable"] = 1
    assert "shared one core" in markdown(figures)


def test_targets_are_of_cases_that_there_are() -> None:
    assert {target.case for target in TARGETS} <= _NAMES
    for target in TARGETS:
        limit = next(case.limit for case in CASES if case.name == target.case)
        assert target.against == limit


def test_the_document_tells_what_the_figures_say() -> None:
    file = KEPT / "figures.json"
    figures = json.loads(file.read_text()) if file.exists() else None
    document = DOCUMENT.read_text()
    assert told(document, figures) == document
    for plot in (figures or {}).get("plots", ()):
        assert (KEPT / plot["file"]).exists()


def test_a_document_without_a_place_for_figures_is_refused() -> None:
    with pytest.raises(ValueError, match="figures: start"):
        told("# Benchmarks\n", None)


def test_the_document_names_every_shape_and_mode() -> None:
    text = Path(DOCUMENT).read_text()
    assert all(f"| {shape} |" in text for shape in ("realistic", "wide", "flat", "deep"))
