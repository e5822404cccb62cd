"""The schedule: when a message is tried again, and how long an endpoint is left alone."""

import pytest

from trellis.webhooks.schedule import STEPS, delay, rest
from trellis.webhooks.sender import seconds_of


def test_the_steps_are_those_that_standard_webhooks_recommends() -> None:
    hours = [n * 3600 for n in (2, 5, 10, 14, 20, 24)]
    assert list(STEPS) == [0, 5, 300, 1800, *hours]


def test_jitter_makes_a_wait_longer_by_a_tenth_at_most() -> None:
    for step, least in list(enumerate(STEPS))[1:]:
        waits = [delay(step) or 0 for _ in range(200)]
        assert least <= min(waits) < max(waits) <= least * 1.1
    assert delay(len(STEPS)) is None


@pytest.mark.parametrize(
    ("status", "rests"),
    [
        (None, [5, 10, 20, 40, 60, 60]),
        (503, [5, 10, 20, 40, 60, 60]),
        (500, [0, 0, 5, 10, 20, 40]),
        (400, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_an_endpoint_that_seems_to_be_down_is_left_alone(status: int | None, rests: list[float]) -> None:
    assert [rest(failures, status) for failures in range(1, 7)] == rests
    assert rest(10_000, status) == 60


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("86401", 86_400),
        ("9" * 400, 86_400),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("Fri, 01 Jan 2010 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400),
        ("Fri, 99 Jan 2100 00:00:00 GMT", 0),
        ("²", 0),
    ],
)
def test_retry_after(sent: str | None, seconds: float) -> None:
    assert seconds_of(sent) == seconds
