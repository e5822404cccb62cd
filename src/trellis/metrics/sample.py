"""The metrics of one process, or the sums over several, as plain numbers by metric and labels."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from trellis.core.gate import Gate
from trellis.http.api import RequestCounts
from trellis.http.server import ServerRefusal
from trellis.metrics.table import METRICS

Key = tuple[str, tuple[str, ...]]  # the name of a metric, and the values of its labels
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_GAUGES: Final = frozenset(metric.name for metric in METRICS if metric.kind == "gauge")


class Sample:
    """Numbers and histograms. A histogram is the number of requests in each class of durations, and their sum in seconds."""

    def __init__(self) -> None:
        self.numbers: dict[Key, float] = defaultdict(float)
        self.histograms: dict[Key, tuple[list[int], float]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add to a number."""
        self.numbers[name, labels] += value

    def include(self, other: "Sample", *, alive: bool) -> None:
        """Add the sample of another process. If the process has ended, its gauges are left out."""
        for (name, labels), value in other.numbers.items():
            if alive or name not in _GAUGES:
                self.numbers[name, labels] += value
        for key, (classes, total) in other.histograms.items():
            known, sum_so_far = self.histograms.get(key, ([0] * len(classes), 0.0))
            self.histograms[key] = ([one + more for one, more in zip(known, classes, strict=True)], sum_so_far + total)


def take_sample(
    gate: Gate, counts: RequestCounts, refused: Mapping[ServerRefusal, int], cache_bytes: int, *, is_ready: bool
) -> Sample:
    """Return the sample of this process."""
    sample = Sample()
    for (interface, operation), tally in tuple(counts.tallies.items()):
        for digit, times in enumerate(tally.statuses):
            if times:
                sample.add("requests", times, interface, operation, f"{digit}xx")
        sample.histograms["request_duration_seconds", (interface, operation)] = (list(tally.classes), tally.total / 1_000_000)
    for (reason, number), times in tuple(counts.refusals.items()):
        sample.add("refusals", times, reason, str(number))
    for refusal in ServerRefusal:  # all of them, even at 0, so that the first refusal shows as an increase
        sample.add("server_refusals", refused.get(refusal, 0), str(refusal.status.value), refusal.reason)
    sample.add("cache_lookups", counts.hits, "hit")
    sample.add("cache_lookups", counts.misses, "miss")
    sample.add("cache_bytes", cache_bytes)
    written = gate.store.writer.counts
    sample.add("writes", written.writes)
    sample.add("commits", written.commits)
    sample.add("commit_seconds", written.committing)
    sample.add("write_lock_wait_seconds", written.waiting)
    sample.add("writes_waiting", gate.store.writer.waiting)
    sample.add("workers_ready", is_ready)
    _add_process(sample)
    return sample


def _add_process(sample: Sample) -> None:
    sample.add("workers", 1)
    sample.add("process_cpu_seconds", time.process_time())
    with suppress(OSError, ValueError, IndexError):  # these files exist only on Linux
        sample.add("process_resident_bytes", int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE)
        sample.add("process_open_files", sum(1 for _ in Path("/proc/self/fd").iterdir()))


def sum_up(samples: Iterable[tuple[Sample, bool]]) -> Sample:
    """Return the sum of the samples of several processes, each given with whether the process is alive."""
    whole = Sample()
    for sample, alive in samples:
        whole.include(sample, alive=alive)
    return whole
