"""What a process costs is read out of /proc."""

import os

from bench.process import cpu_of, memory_of


def test_the_time_on_the_processor_is_user_and_system_together() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"4711 (a (strange) name) S 1 4711 4711 0 -1 4194560 1 2 3 4 {3 * ticks} {2 * ticks} 0 0 20 0 3 0 100 1 1"
    assert cpu_of(stat) == 5.0


def test_memory_is_what_is_resident() -> None:
    assert memory_of("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t  2048 kB\nThreads:\t1\n") == 2 * 2**20
    assert memory_of("Name:\tx\n") == 0
