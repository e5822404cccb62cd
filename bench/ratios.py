"""What repetitions say together: medians, and ratios of runs that stood side by side."""

from collections.abc import Mapping, Sequence
from statistics import median

Rep = Mapping[str, float]


def middle(reps: Sequence[Rep], measure: str) -> float:
    """Return the median of a measure over the repetitions."""
    return median(rep[measure] for rep in reps)


def ratio(reps: Sequence[Rep], others: Sequence[Rep], measure: str = "rate", to: str = "") -> float:
    """Return the median of the ratios of each repetition to its neighbour in time, so that a machine that drifts is no matter.

    With `to`, the ratio is to that measure of the other.
    """
    return median(one[measure] / other[to or measure] for one, other in zip(reps, others, strict=True))


def spread(reps: Sequence[Rep], measure: str = "rate") -> float:
    """Say how far the repetitions lie apart: the distance from the least to the most, as a share of the median."""
    values = [rep[measure] for rep in reps]
    return (max(values) - min(values)) / median(values)
