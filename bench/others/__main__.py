"""`make bench-others`: measure trellis beside Datasette and Directus, over the same forums; print it, and keep it."""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.document import DOCUMENT, ROOT
from bench.machine import described
from bench.others import datasette, directus, install, ours
from bench.others.cases import CASES, FORUMS, Service
from bench.others.figures import FILE, table, told
from bench.others.measure import measured
from bench.process import cores
from bench.ratios import middle
from bench.terminal import console, show, steps
from bench.wrk import Unusable, missing

Start = Callable[[Path, int, Path], AbstractContextManager[Service]]
_OTHERS: Final[dict[str, tuple[Callable[[Path], Path], Start]]] = {
    datasette.NAME: (install.datasette, datasette.service),
    directus.NAME: (install.directus, directus.service),
}


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="make bench-others", description=__doc__)
    parser.add_argument("mode", choices=("full", "quick"), nargs="?", default="full", help="quick leaves the documentation alone")
    quick = parser.parse_args().mode == "quick"
    if problem := missing():
        raise SystemExit(problem)
    folder = ROOT / "var" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    installed, skipped = _installed(folder)
    repetitions, seconds = (1, 1) if quick else (5, 2)
    figures: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": described(),
        "node": _node_version(),
        "plan": {"repetitions": repetitions, "seconds": seconds, "forums": FORUMS},
        "skipped": skipped,
    }
    try:
        figures |= _measured(folder, installed, repetitions, seconds)
    except Unusable as error:
        raise SystemExit(f"The benchmark cannot be used: {error}") from None
    show([table(figures)])
    file = folder / FILE.name if quick else FILE
    file.write_text(json.dumps(figures, indent=1) + "\n")
    if not quick:
        DOCUMENT.write_text(told(DOCUMENT.read_text(), figures))
    console.print(f"The figures are in {file.relative_to(ROOT)}.")


def _installed(folder: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """Install what can be: name → folder, and name → reason of those that cannot."""
    installed, skipped = dict[str, Path](), dict[str, str]()
    with steps(len(_OTHERS)) as line:
        for name, (put, _) in _OTHERS.items():
            line.say(f"installing {name}, which takes minutes the first time")
            try:
                installed[name] = put(folder / name.lower())
                line.done()
            except install.Skipped as reason:
                skipped[name] = str(reason)
                line.done(f"{name} is skipped: {reason}")
    return installed, skipped


def _measured(folder: Path, installed: dict[str, Path], repetitions: int, seconds: int) -> dict[str, Any]:
    server, load = cores()
    console.print(f"Servers on core {server}, wrk on core {load}, {repetitions} × {seconds} s each, interleaved.")
    with tempfile.TemporaryDirectory(dir=folder) as place, ExitStack() as stack, steps(len(CASES) + 1) as line:
        line.say("filling the databases, and starting")
        services = [stack.enter_context(ours.service(Path(place), server))]
        for name, where in installed.items():
            line.say(f"filling the database of {name}, and starting it")
            services.append(stack.enter_context(_OTHERS[name][1](Path(place), server, where)))
        line.done(f"Started {', '.join(f'{service.name} {service.version}' for service in services)}, with {FORUMS:,} forums each.")
        cases: dict[str, Any] = {}
        for case in CASES:
            cases[case.name] = measured(case, services, repetitions, seconds, line.say)
            rates = ", ".join(f"{name} {middle(reps, 'rate'):,.0f}" for name, reps in cases[case.name].items())
            line.done(f"{case.title}: {rates} a second")
        return {"services": {service.name: service.version for service in services}, "cases": cases}


def _node_version() -> str:
    try:
        told = subprocess.run([install.node(), "--version"], capture_output=True, text=True, check=False)
    except install.Skipped:
        return "not installed"
    return told.stdout.strip().removeprefix("v")


if __name__ == "__main__":
    main()
