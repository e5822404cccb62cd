"""Services beside trellis: what they are sent, what becomes of the figures, and that the document has those of its file."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bench.document import DOCUMENT, ROOT
from bench.others import datasette, directus, install, ours, rows
from bench.others.cases import CASES, FORUMS, OURS
from bench.others.figures import FILE, markdown, table, told

_SENT = {OURS: ours._REQUESTS, datasette.NAME: datasette._REQUESTS, directus.NAME: directus._REQUESTS}


def _rep(rate: float, cpu: float) -> dict[str, float]:
    return {"rate": rate, "p50": 1000.0, "p99": 3000.0, "cpu": cpu, "memory": 100 * 2**20}


@pytest.fixture
def figures() -> dict[str, Any]:
    """Figures of one case with one other service; the other was skipped."""
    machine = {"cpu": "Some CPU", "cores": 2, "memory": "24 GiB", "system": "Debian", "disk": "ext4", "python": "CPython 3.13"}
    return {
        "date": "2026-01-15",
        "machine": machine | {"load": 0.1, "commit": "abc"},
        "node": "24.0.0",
        "plan": {"repetitions": 2, "seconds": 1, "forums": FORUMS},
        "skipped": {"Directus": "There is no node."},
        "services": {OURS: "1.0", "Datasette": "1.1"},
        "cases": {"create": {OURS: [_rep(900, 100), _rep(800, 100)], "Datasette": [_rep(90, 1100), _rep(20, 1300)]}},
    }


def test_a_service_is_one_row_with_its_ratios(figures: dict[str, Any]) -> None:
    assert table(figures).rows == (
        ("create: trellis", "850", "1.00", "3.00", "100", "100", "", "", ""),
        ("create: Datasette", "55", "1.00", "3.00", "1,200", "100", "25.0 ×", "12.0 ×", "reached"),
    )


def test_markdown_says_which_versions_and_why_one_was_skipped(figures: dict[str, Any]) -> None:
    text = markdown(figures)
    assert "trellis 1.0, Datasette 1.1; Some CPU, 2 cores" in text
    assert "Load average before the run: 0.1. Directus was skipped: There is no node. Every repetition" in text


def test_the_document_tells_what_the_figures_say() -> None:
    figures = json.loads(FILE.read_text()) if FILE.exists() else None
    document = DOCUMENT.read_text()
    assert told(document, figures) == document


def test_a_document_without_a_place_for_them_is_refused() -> None:
    with pytest.raises(ValueError, match="others: start"):
        told("# Benchmarks\n", None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_shares_of_a_case_make_a_hundred(case: Any) -> None:
    assert sum(case.shares.values()) == 100


@pytest.mark.parametrize("name", _SENT)
def test_every_service_is_sent_json_of_every_kind(name: str) -> None:
    assert _SENT[name].keys() == {"read", "list", "create", "update"}
    for kind, request in _SENT[name].items():
        assert bool(request.body) == (kind in {"create", "update"})
        if request.body:
            json.loads(request.body.replace("{id}", "1").replace("{n}", "2"))


def test_the_others_have_the_forums_of_trellis(tmp_path: Path) -> None:
    file = tmp_path / "forums.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(datasette._TABLE)
    rows.fill(file)
    assert rows.count(file) == FORUMS
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT name FROM forums WHERE id = 2").fetchone() == ("News no. 2",)


def test_what_cannot_be_installed_is_skipped_with_a_reason() -> None:
    with pytest.raises(install.Skipped, match=r"failed: an error of some kind"):
        install._run([sys.executable, "-c", "print('noise'); raise SystemExit('an error of some kind')"])


def test_what_is_installed_is_pinned_and_names_no_registry() -> None:
    lock = (ROOT / "bench" / "others" / "directus" / "package-lock.json").read_text()
    packages = json.loads(lock)["packages"]
    assert '"resolved"' not in lock
    assert all("integrity" in package for name, package in packages.items() if name)
    assert packages["node_modules/directus"]["version"] == packages[""]["dependencies"]["directus"]
    pinned = (ROOT / "requirements" / "others.txt").read_text()
    assert "datasette==" in pinned
    assert "--hash=sha256:" in pinned
    assert "://" not in pinned
