"""The figures beside those that are committed: what is worse by more than it may be on the same machine."""

import json
from collections.abc import Mapping
from typing import Any, Final

from bench.cases import CASES, OURS
from bench.document import KEPT
from bench.ratios import ratio

_WORSE: Final = 0.15  # of a case's share of its limit
_MACHINE: Final = ("cpu", "cores", "usable", "memory", "disk")  # what makes it the same


def compare(figures: dict[str, Any]) -> list[str]:
    """Put the shares of the limit that were measured last into the figures, and return which case is worse now, and by how much.

    Shares, since the limit is measured in the same run: a machine that is slower today is no matter. Elsewhere nothing is worse.
    """
    file = KEPT / "figures.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    if not before:
        return []
    figures["before"] = {"commit": before["machine"]["commit"], "shares": shares_of(before)}
    if any(figures["machine"][name] != before["machine"][name] for name in _MACHINE):
        return []
    return find_worse(shares_of(figures), figures["before"]["shares"])


def shares_of(figures: Mapping[str, Any]) -> dict[str, float]:
    """Return the share of its limit that each case over HTTP reaches."""
    over_http = figures.get("http", {})
    return {
        case.name: round(ratio(reps[OURS], reps[case.limit]), 4)
        for case in CASES
        if case.limit is not None and case.limit in (reps := over_http.get(case.name, {}))
    }


def find_worse(now: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """Return the titles of the cases whose share is less than it may be, with how much it has lost."""
    return [
        f"{case.title} by {1 - now[case.name] / before[case.name]:.0%}"
        for case in CASES
        if case.name in now and case.name in before and now[case.name] < (1 - _WORSE) * before[case.name]
    ]
