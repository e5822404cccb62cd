"""The audit of dependencies: it fails for a known vulnerability, and not where nobody can be asked."""

import subprocess
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from scripts.audit import REQUIREMENTS, audit, report

FINE = {"name": "typer", "version": "0.27.3", "vulns": []}
UNKNOWN = {"name": "uvloop", "skip_reason": "Dependency not found on PyPI and could not be audited: uvloop (0.23.0)"}
VULNERABLE = {"name": "jinja2", "version": "2.0", "vulns": [{"id": "PYSEC-2021-66", "fix_versions": ["2.11.3"]}]}


@pytest.mark.parametrize(
    ("dependencies", "told", "vulnerable"),
    [
        ([], ["The database of vulnerabilities cannot be reached from here: no dependency was audited."], False),
        ([UNKNOWN], ["The database of vulnerabilities cannot be reached from here: no dependency was audited."], False),
        ([FINE], ["Audited 1 pinned dependencies: 0 known vulnerabilities."], False),
        (
            [FINE, VULNERABLE, VULNERABLE, UNKNOWN],
            [
                "Audited 2 pinned dependencies: 1 known vulnerabilities.",
                "jinja2 2.0: PYSEC-2021-66, fixed in 2.11.3",
                "Not in the database, and not audited: uvloop.",
            ],
            True,
        ),
    ],
)
def test_what_was_found_is_told(dependencies: list[dict[str, Any]], told: list[str], vulnerable: bool) -> None:
    assert report(dependencies) == (told, vulnerable)


@pytest.mark.parametrize("output", ["", "no JSON"])
def test_an_audit_that_could_not_ask_anybody_has_found_nothing(monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, output, "ERROR: Could not connect to PyPI's feed\n")
    )
    assert audit() == []


def versions(file: str) -> dict[str, set[str]]:
    """Return the versions that a file pins, by package: several where markers choose."""
    found: dict[str, set[str]] = {}
    for line in (Path(__file__).parents[2] / file).read_text().splitlines():
        if "==" in line and not line.startswith((" ", "#")):
            name, _, version = line.split()[0].partition("==")
            found.setdefault(name.partition("[")[0], set()).add(version)
    return found


def test_pins_that_are_audited_together_are_the_same() -> None:
    for files in REQUIREMENTS:
        for one, other in combinations(map(versions, files), 2):
            assert {name: one[name] for name in one.keys() & other} == {name: other[name] for name in one.keys() & other}


def test_every_file_of_pins_is_audited_and_each_pin_has_its_hash() -> None:
    folder = Path(__file__).parents[2] / "requirements"
    assert {f"requirements/{file.name}" for file in folder.glob("*.txt")} == {file for files in REQUIREMENTS for file in files}
    for file in folder.glob("*.txt"):
        pins = [
            line for line in file.read_text().replace("\\\n", " ").splitlines() if "==" in line and not line.startswith((" ", "#"))
        ]
        assert pins
        assert all("--hash=sha256:" in pin for pin in pins)
