"""Runs wrk with bench/load.lua and reads what it prints."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.process import pinned

SCRIPT: Final = Path(__file__).parent / "load.lua"
_DONE: Final = SCRIPT.with_name("figures.lua")  # what each script prints at its end
_FIGURES: Final = re.compile(r"^FIGURES (\{.*\})$", re.MULTILINE)


class Unusable(Exception):
    """A run whose figures must not be used; the text says why."""


class Starved(Unusable):
    """A run in which nothing was answered: not a wrong answer, but a machine that had no time for it."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one run of wrk did: times in microseconds, `bytes` of whole answers, `refused` answers of status 400 and more."""

    requests: int
    seconds: float
    bytes: int
    p50: float
    p99: float
    refused: int
    broken: int


def parsed(output: str) -> Load:
    """Read the line of figures out of what wrk printed. Raises Unusable if there is none, or if nothing was answered."""
    found = _FIGURES.search(output)
    if found is None:
        raise Unusable(f"wrk printed no figures: {output.strip()[-500:]}")
    load = Load(**json.loads(found[1]))
    if not load.requests:
        raise Starved("Nothing was answered.")
    return load


def judged(load: Load, *, refusals: bool, size: int | None) -> Load:
    """Return the load if its answers are what they should be: all refused or none, none broken, and of this mean size.

    Raises Unusable otherwise. `size` is in bytes with the head; names and numbers differ in length, hence the tenth.
    """
    if load.broken:
        raise Unusable(f"{load.broken} of {load.requests} requests had no answer.")
    if load.refused != (load.requests if refusals else 0):
        raise Unusable(f"{load.refused} of {load.requests} answers had a status of 400 or more.")
    mean = load.bytes / load.requests
    if size is not None and abs(mean - size) > 0.1 * size:
        raise Unusable(f"The answers had {mean:.0f} bytes on average; {size} were expected.")
    return load


def wrk(
    address: str, mode: str, arguments: Sequence[str], seconds: int, core: int, clients: int = 32, *, script: Path = SCRIPT
) -> Load:
    """Load a service for so many seconds, from one thread on one core."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "20s", "-s", str(script), address, "--", mode]
    environment = {**os.environ, "LOAD_MODE": mode, "LOAD_FIGURES": str(_DONE)}
    done = subprocess.run(
        pinned([*command, *arguments], core),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=seconds + 60,
    )
    if done.returncode:
        raise Unusable(f"wrk failed: {done.stderr.strip()[-500:]}")
    return parsed(done.stdout)


def missing() -> str | None:
    """Say what is missing for loading a service; None if nothing is."""
    if shutil.which("wrk"):
        return None
    return "wrk is not installed. On Debian and Ubuntu: apt-get install wrk. Elsewhere: https://github.com/wg/wrk"
