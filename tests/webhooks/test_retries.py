"""Retries: when a message is tried again, and for how long an endpoint that seems to be down is paused."""

import pytest

from trellis.webhooks.retries import DELAYS, pause_length, retry_delay


def test_the_steps_are_those_that_standard_webhooks_recommends() -> None:
    hours = [n * 3600 for n in (2, 5, 10, 14, 20, 24)]
    assert list(DELAYS) == [0, 5, 300, 1800, *hours]


def test_jitter_makes_a_wait_longer_by_a_tenth_at_most() -> None:
    for made, least in list(enumerate(DELAYS))[1:]:
        waits = [retry_delay(made) or 0 for _ in range(200)]
        assert least <= min(waits) < max(waits) <= least * 1.1
    assert retry_delay(len(DELAYS)) is None


@pytest.mark.parametrize(
    ("status", "pauses"),
    [
        (None, [5, 10, 20, 40, 60, 60]),
        (503, [5, 10, 20, 40, 60, 60]),
        (500, [0, 0, 5, 10, 20, 40]),
        (400, [0, 0, 0, 0, 0, 0]),
    ],
)
def test_an_endpoint_that_seems_to_be_down_is_paused(status: int | None, pauses: list[float]) -> None:
    assert [pause_length(failures, status) for failures in range(1, 7)] == pauses
    assert pause_length(10_000, status) == 60
