"""Draws where time goes as a flame graph: a box for each function, as wide as its share, upon the one that has called it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final

Stack = tuple[str, ...]

_WIDTH: Final = 1200  # px
_ROW: Final = 17
_HEAD: Final = 52
_LETTER: Final = 6.1  # px, of a label
_LEAST: Final = 0.002  # of the whole; narrower boxes are left out
_LABELLED: Final = 30  # px; narrower boxes have no label
_WAITING: Final = {"EpollSelector.select", "Writer._serve", "Condition.wait", "_worker"}
_STARTS: Final = {"Runner.run", "Thread.run", "_worker"}  # what a thread's work begins with
# By the first of these that is in the path of a function's file.
_COLOURS: Final = {
    "trellis/store": ("the store", "#f4a582"),
    "trellis/core": ("the core", "#fddbc7"),
    "trellis/http": ("the interfaces", "#92c5de"),
    "trellis": ("the interfaces", "#92c5de"),
    "uvicorn": ("the server", "#d9f0d3"),
    "sqlalchemy": ("SQLAlchemy, apsw", "#c2a5cf"),
    "apsw": ("SQLAlchemy, apsw", "#c2a5cf"),
    "": ("Python and other packages", "#e0e0e0"),
}


@dataclass(slots=True)
class _Box:
    share: float = 0.0
    above: dict[str, "_Box"] = field(default_factory=dict)


def parse_stacks(folded: str) -> Counter[Stack]:
    """Read stacks as `frame;frame;frame samples`, one on each line, the outermost first; those of threads that wait are left out.

    py-spy stops the process for a look, and some of the threads that it wakes by that seem to run.
    """
    stacks = Counter[Stack]()
    for line in folded.splitlines():
        frames, _, samples = line.rpartition(" ")
        stack = tuple(frames.split(";"))
        if _name(stack[-1])[0] not in _WAITING:
            stacks[stack] += int(samples)
    return stacks


def draw_flames(title: str, stacks: Mapping[Stack, float], cost: float) -> str:
    """Return the picture of some stacks as SVG. `cost` is what all of them together are, in microseconds."""
    whole = sum(stacks.values()) or 1.0
    root = _pile(_drop_common(stacks), whole)
    boxes = list(_place(root, 0.0, 0))
    height = _HEAD + _ROW * (1 + max((depth for *_, depth in boxes), default=0)) + 8
    drawn = [_draw(name, share, left, height, depth, cost) for name, share, left, depth in boxes]
    legend = dict(_COLOURS.values())
    keys = [
        f'<rect x="{8 + 170 * place}" y="30" width="12" height="12" fill="{colour}"/>'
        f'<text x="{26 + 170 * place}" y="40">{escape(what)}</text>'
        for place, (what, colour) in enumerate(legend.items())
    ]
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">',
            "<style>text { font: 11px ui-monospace, monospace; fill: #111 } rect { stroke: #fff; stroke-width: .5 }</style>",
            f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
            f'<text x="8" y="19" style="font-size: 14px">{escape(title)}: {cost:,.0f} µs of the processor each</text>',
            *keys,
            *drawn,
            "</svg>\n",
        )
    )


def _drop_common(stacks: Mapping[Stack, float]) -> dict[Stack, float]:
    """Return the stacks without the frames that start the program or a thread."""
    kept = Counter[Stack]()
    for stack, samples in stacks.items():
        ends = [place for place, frame in enumerate(stack) if _name(frame)[0] in _STARTS]
        kept[stack[ends[-1] + 1 :] if ends else stack] += samples  # type: ignore[assignment]  # a counter of anything
    return dict(kept)


def _pile(stacks: Mapping[Stack, float], whole: float) -> _Box:
    root = _Box()
    for stack, samples in stacks.items():
        box = root
        box.share += samples / whole
        for frame in stack:
            box = box.above.setdefault(frame, _Box())
            box.share += samples / whole
    return root


def _place(box: _Box, left: float, depth: int) -> Iterator[tuple[str, float, float, int]]:
    """Return each box with its share, where it begins, of the whole, and how many are below it."""
    for name, above in sorted(box.above.items(), key=lambda item: -item[1].share):
        if above.share >= _LEAST:
            yield name, above.share, left, depth
            yield from _place(above, left, depth + 1)
            left += above.share


def _draw(frame: str, share: float, left: float, height: int, depth: int, cost: float) -> str:
    name, place = _name(frame)
    width, x, y = share * _WIDTH, left * _WIDTH, height - _ROW * (depth + 1) - 4
    colour = next(colour for part, (_, colour) in _COLOURS.items() if part in place)
    label = escape(name[: int((width - 6) / _LETTER)]) if width >= _LABELLED else ""
    told = escape(f"{name} ({place}): {share:.1%}, {share * cost:.1f} µs")
    box = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 1}" fill="{colour}"/>'
    return f'<g><title>{told}</title>{box}<text x="{x + 3:.1f}" y="{y + 12}">{label}</text></g>'


def _name(frame: str) -> tuple[str, str]:
    """Return the name of a function and its file, as far as it says which package that is in."""
    name, _, place = frame.rpartition(" (")
    place = place.rstrip(")").replace("\\", "/")
    for folder in ("site-packages/", "/src/"):
        place = place.rpartition(folder)[2]
    return name or frame, place
