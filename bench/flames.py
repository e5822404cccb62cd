"""Draw where the processor's time goes in the commonest cases: `python -m bench.flames`, after `make bench` has set up its tools.

Each case loads a service as `make bench` does, while py-spy looks at the stacks of its threads. The pictures are kept in
docs/benchmarks/flames. It takes five minutes.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from bench.cases import CASES, FORUMS, Case
from bench.document import ROOT
from bench.flame_graph import draw_flames, parse_stacks
from bench.over_http import Databases, Run, seeded
from bench.process import Server, cores
from bench.terminal import console, steps

FOLDER: Final = ROOT / "docs" / "benchmarks" / "flames"
COMMON: Final = ("read-hot", "read-random-off", "list-25-off", "create", "update")
_EVERY: Final = 250  # samples a second
_SETTLE: Final = 20  # seconds of load before: what seeding has left to do is done, and what is kept in memory is there
_PRICED: Final = 8  # seconds in which a request's time is measured, without anybody looking


def main() -> None:
    """Profile and draw each case."""
    parser = argparse.ArgumentParser(prog="python -m bench.flames", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=15, help="how long each case is looked at")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go")
    parser.add_argument("--only", nargs="+", choices=COMMON, default=COMMON)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, steps(len(given.only) + 1) as line:
        databases = seeded(Path(place), FORUMS, lambda who, done: line.say(f"seeding {who}: {done:,} of {FORUMS:,}"))
        line.done(f"Seeded {FORUMS:,} forums.")
        for case in (case for case in CASES if case.name in given.only):
            line.say(f"{case.title}: looking for {given.seconds} s")
            stacks, cost = profile(case, databases, given.seconds)
            (given.folder / f"{case.name}.svg").write_text(draw_flames(case.title, parse_stacks(stacks), cost), encoding="utf-8")
            line.done(f"{case.title}: {cost:.0f} µs a request")
    console.print(f"The pictures are in {given.folder}.")


def profile(case: Case, databases: Databases, seconds: int) -> tuple[str, float]:
    """Return the stacks of a service under the load of a case, as py-spy writes them, and the microseconds of a request."""
    environment = {"TRELLIS_DATABASE_URL": f"sqlite:///{databases.ours}"} | ({} if case.cached else {"TRELLIS_ANSWER_CACHE": "0"})
    stacks = databases.folder / f"{case.name}.folded"
    with Server(["-m", "trellis", "serve", "--port", "0"], databases.folder, environment, cores()[0]) as server:
        run = Run(case, databases.key, server)
        run(_SETTLE)
        cost = run(_PRICED)["cpu"]
        load = threading.Thread(target=run, args=(seconds + 1,))
        load.start()
        subprocess.run(
            (
                *(str(Path(sys.executable).with_name("py-spy")), "record", "--pid", str(server.pid), "--function"),
                *("--rate", str(_EVERY), "--duration", str(seconds), "--format", "raw", "--output", str(stacks)),
            ),
            check=True,
            capture_output=True,
        )
        load.join()
    return stacks.read_text(encoding="utf-8"), cost


if __name__ == "__main__":
    main()
