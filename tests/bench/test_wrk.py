"""What wrk prints is read, and a run whose answers are wrong is not used."""

from dataclasses import replace

import pytest

from bench.wrk import Load, Starved, Unusable, judged, parsed

_LOAD = Load(requests=1000, seconds=2.0, bytes=500_000, p50=900.0, p99=2100.0, refused=0, broken=0)
_OUTPUT = """Running 2s test @ http://127.0.0.1:8000
  1 threads and 32 connections
Requests/sec:    500.00

FIGURES {"requests": 1000, "seconds": 2.000000, "bytes": 500000, "p50": 900.0, "p99": 2100.0, "refused": 0, "broken": 0}
"""


def test_the_line_of_figures_is_read_out_of_what_wrk_prints() -> None:
    assert parsed(_OUTPUT) == _LOAD


def test_a_run_without_figures_is_refused() -> None:
    with pytest.raises(Unusable, match="unable to connect"):
        parsed("unable to connect")


def test_a_run_without_answers_is_starved() -> None:
    with pytest.raises(Starved):
        parsed(_OUTPUT.replace('"requests": 1000', '"requests": 0'))


def test_good_answers_pass() -> None:
    assert judged(_LOAD, refusals=False, size=510) is _LOAD
    assert judged(_LOAD, refusals=False, size=None) is _LOAD


@pytest.mark.parametrize(
    ("load", "refusals", "size", "why"),
    [
        (replace(_LOAD, broken=1), False, None, "1 of 1000 requests had no answer"),
        (replace(_LOAD, refused=1), False, None, "1 of 1000 answers had a status"),
        (replace(_LOAD, refused=999), True, None, "999 of 1000 answers had a status"),
        (_LOAD, False, 600, "500 bytes on average; 600 were expected"),
        (_LOAD, False, 400, "500 bytes on average; 400 were expected"),
    ],
)
def test_wrong_answers_make_a_run_unusable(load: Load, refusals: bool, size: int | None, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        judged(load, refusals=refusals, size=size)
