"""Charts of requests: the layout of stacked bars, one for each span of time, which a template draws as SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.requests import CLASSES

WIDTH: Final = 720
HEIGHT: Final = 160
_GAP: Final = 4
_MOST_TICKS: Final = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One rectangle of a stack."""

    x: float
    y: float
    width: float
    height: float
    name: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One span of time: its bars, its short label and full title, and its beginning and end as values for filters."""

    label: str
    title: str
    counts: Mapping[str, int]
    bars: tuple[Bar, ...]
    x: float
    width: float
    total: int
    span: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `top` is the value at its upper edge, `most` the value of its highest stack."""

    stacks: tuple[Stack, ...]
    top: int
    most: int
    total: int
    totals: Mapping[str, int]

    @property
    def ticks(self) -> tuple[Stack, ...]:
        """The spans that are labelled below the chart: a few, evenly spread, starting with the first."""
        step = -(-len(self.stacks) // _MOST_TICKS) or 1
        return self.stacks[::step]

    @property
    def scale(self) -> tuple[int, ...]:
        """The values beside the chart, from the upper edge down: whole numbers only."""
        return (self.top, self.top // 2, 0) if self.top % 2 == 0 else (self.top, 0)


def build_chart(spans: Sequence[Mapping[str, Any]], labels: Sequence[tuple[str, str]]) -> Chart:
    """Lay out spans, each with its beginning (`at`), its end (`to`) and a count for every class.

    `labels` are the short label and the full title of each span.
    """
    counts = [{name: int(span.get(name, 0)) for name in CLASSES} for span in spans]
    most = max((sum(one.values()) for one in counts), default=0)
    top = _round_up(most)
    width = WIDTH / max(1, len(counts))
    stacks = tuple(
        _stack(number * width, width - _GAP, one, label, top, {"from": span["at"], "to": span["to"]})
        for number, (one, label, span) in enumerate(zip(counts, labels, spans, strict=True))
    )
    totals = {name: sum(one[name] for one in counts) for name in CLASSES}
    return Chart(stacks, top, most, sum(totals.values()), totals)


@dataclass(frozen=True, slots=True)
class UseLine:
    """A small chart of one number a day: its bars as (x, y, width, height), the sum of the numbers, and the last number."""

    bars: tuple[tuple[float, float, float, float], ...]
    total: int
    last: int


LINE_WIDTH: Final = 84
LINE_HEIGHT: Final = 20


def build_use_line(counts: Sequence[int]) -> UseLine:
    """Lay out numbers as bars side by side, scaled to the highest number."""
    most, width = max(counts, default=0), LINE_WIDTH / max(1, len(counts))
    heights = [max(2.0, count / most * LINE_HEIGHT) if count else 1.0 for count in counts]
    bars = tuple(
        (round(number * width, 2), round(LINE_HEIGHT - height, 2), round(width - 1.5, 2), round(height, 2))
        for number, height in enumerate(heights)
    )
    return UseLine(bars, sum(counts), counts[-1] if counts else 0)


def _stack(x: float, width: float, counts: Mapping[str, int], label: tuple[str, str], top: int, span: Mapping[str, str]) -> Stack:
    bars: list[Bar] = []
    y = float(HEIGHT)
    for name, count in counts.items():
        if count:
            height = max(2.0, count / top * HEIGHT)
            y -= height
            bars.append(Bar(round(x, 2), round(y, 2), round(width, 2), round(height, 2), name))
    return Stack(label[0], label[1], counts, tuple(bars), round(x, 2), round(width, 2), sum(counts.values()), span)


def _round_up(value: int) -> int:
    """Round up to 1, 2 or 5 times a power of ten, and to at least 4."""
    step = 1
    while True:
        for digit in (1, 2, 5):
            if digit * step >= value:
                return max(4, digit * step)
        step *= 10
