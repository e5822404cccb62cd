"""`make bench`: measure trellis beside its limit and a peer, and its cost as the work grows; print it, and keep it."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.before import compare
from bench.cases import CASES, FORUMS, OURS, PACED, Case
from bench.document import DOCUMENT, KEPT, ROOT, told
from bench.growth import Grow, grown
from bench.machine import described
from bench.over_http import Databases, Plan, measured, seeded, with_postgresql
from bench.paced import compare as paced
from bench.pairs import ENGINES, compared
from bench.plots import draw
from bench.process import cores
from bench.ratios import middle
from bench.report import tables
from bench.start import measured as started
from bench.terminal import console, show, steps
from bench.wrk import Unusable, missing

_PLANS: Final = {"quick": Plan(repetitions=1, seconds=1), "full": Plan(repetitions=7, seconds=1)}
_GROWTHS: Final = {
    "quick": Grow(seconds=0.2, most={"sqlite": {"realistic": 100_000}}),
    "full": Grow(
        seconds=0.5,
        most={
            "sqlite": {"realistic": 1_000_000, "wide": 1_000_000, "flat": 1_000_000, "deep": 1_000_000},
            "postgresql": {"realistic": 100_000},
        },
    ),
}


def main() -> None:
    """Run what was asked for."""
    given = _arguments()
    folder = ROOT / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    if given.part not in {"start", "pairs"}:
        _have_wrk()
    figures: dict[str, Any] = {
        "mode": given.mode,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": described(),
        "plan": {"repetitions": _PLANS[given.mode].repetitions, "seconds": _PLANS[given.mode].seconds, "forums": FORUMS},
    }
    started = time.monotonic()
    try:
        if given.part in {"all", "http"}:
            cases = [case for case in CASES if not given.only or case.name in given.only]
            figures |= _over_http(folder, _PLANS[given.mode], cases)
        if given.part in {"all", "start"} and not given.only:
            figures["start"] = _starts(folder, _PLANS[given.mode])
        if given.part in {"all", "pairs"} and not given.only:
            figures["pairs"] = _pairs(folder, _PLANS[given.mode])
        if given.part in {"all", "growth"} and not given.only:
            figures |= _growth(folder, _GROWTHS[given.mode])
    except Unusable as error:
        raise SystemExit(f"The benchmark cannot be used: {error}") from None
    worse = compare(figures)
    show(tables(figures))
    whole = given.mode == "full" and given.part == "all" and not given.only
    kept = KEPT if whole else folder
    _keep(figures, kept)
    if whole:
        DOCUMENT.write_text(told(DOCUMENT.read_text(), figures))
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    console.print(f"Took {minutes} min {seconds} s. The figures are in {kept.relative_to(ROOT)}/figures.json.")
    if worse and given.mode == "full":
        raise SystemExit("Worse than the figures before by more than 15 %: " + "; ".join(worse))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("mode", choices=("full", "quick"), nargs="?", default="full", help="quick takes about two minutes")
    parser.add_argument("--part", choices=("all", "http", "start", "pairs", "growth"), default="all")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES], default=[], help="these cases over HTTP only")
    return parser.parse_args()


def _have_wrk() -> None:
    """See that wrk is there: install it where that may be done, or say what to do."""
    if missing() and os.geteuid() == 0 and shutil.which("apt-get"):
        console.print("Installing wrk …")
        subprocess.run(["apt-get", "install", "--yes", "--quiet", "wrk"], check=False, capture_output=True)
    if problem := missing():
        raise SystemExit(problem)


def _over_http(folder: Path, plan: Plan, cases: list[Case]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    server, load = cores()
    console.print(f"Servers on core {server}, wrk on core {load}, {plan.repetitions} × {plan.seconds} s each, interleaved.")
    with tempfile.TemporaryDirectory(dir=folder) as place, steps(len(cases) + len(PACED) + 1) as line:
        line.say("seeding")
        databases = seeded(Path(place), plan.forums, lambda who, done: line.say(f"seeding {who}: {done:,} of {plan.forums:,}"))
        line.done(f"Seeded {plan.forums:,} forums twice.")

        def measure(databases: Databases, engine: str) -> None:
            for case in (case for case in cases if case.engine == engine):
                found[case.name] = measured(case, databases, plan, line.say)
                rates = ", ".join(f"{name} {middle(reps, 'rate'):,.0f}" for name, reps in found[case.name].items())
                line.done(f"{case.title}: {rates} a second")

        measure(databases, "sqlite")
        at_fixed_rates: dict[str, Any] = {}
        for paced_load in (one for one in PACED if one.best in found):
            rate = middle(found[paced_load.best][OURS], "rate") / 2
            reps = paced(paced_load, databases, rate, plan.repetitions, line.say)
            at_fixed_rates[paced_load.name] = {"rate": round(rate), "reps": reps}
            line.done(f"{paced_load.title}, {rate:,.0f} requests a second at fixed times")
        if any(case.engine == "postgresql" for case in cases):
            line.say("starting PostgreSQL")
            with with_postgresql(databases, lambda who, done: line.say(f"seeding {who}: {done:,}")) as both:
                measure(both, "postgresql")
    return {"http": found, "paced": at_fixed_rates}


def _starts(folder: Path, plan: Plan) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as place, steps(1) as line:
        line.say("starting")
        found = started(Path(place), plan.repetitions, cores()[0])
        line.done("Started each command.")
        return found


def _pairs(folder: Path, plan: Plan) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(dir=folder) as place, steps(len(ENGINES)) as line:
        return compared(Path(place), plan.repetitions, line)


def _growth(folder: Path, grow: Grow) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=folder) as place, steps(len(grow.communities)) as line:
        return grown(Path(place), grow, line)


def _keep(figures: dict[str, Any], folder: Path) -> None:
    """Write the figures, and the plots of them, which they then name."""
    folder.mkdir(parents=True, exist_ok=True)
    figures["plots"] = draw(figures, folder)
    (folder / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
