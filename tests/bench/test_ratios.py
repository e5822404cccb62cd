"""Medians and ratios of repetitions."""

import pytest

from bench.ratios import middle, ratio, spread

_OURS = [{"rate": 80.0, "p50": 1.0, "p99": 3.0}, {"rate": 40.0, "p50": 2.0, "p99": 4.0}, {"rate": 90.0, "p50": 1.0, "p99": 9.0}]
_LIMIT = [{"rate": 100.0}, {"rate": 50.0}, {"rate": 90.0}]


def test_a_ratio_is_the_median_of_the_ratios_of_neighbours() -> None:
    assert ratio(_OURS, _LIMIT) == 0.8


def test_the_middle_is_the_median() -> None:
    assert middle(_OURS, "rate") == 80.0


def test_the_spread_is_the_distance_from_least_to_most() -> None:
    assert spread(_OURS) == pytest.approx(50 / 80)


def test_contestants_with_different_numbers_of_repetitions_are_not_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio(_OURS, _LIMIT[:2])
