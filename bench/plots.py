"""Draws the figures: SVG on no background, in colours that can be told apart on light and on dark pages."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.cases import CASES, OURS, PEER
from bench.forest import SHAPES
from bench.ratios import ratio
from bench.report import by_operation

_INK: Final = "#7a828e"  # at least 3.7 to 1 on white and on GitHub's dark page
_COLOURS: Final = ("#3b82c4", "#d9822b", "#3c9d6b", "#a05fb5")
_STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trellis",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_ENGINES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_COLUMNS: Final = 4


def draw(figures: Mapping[str, Any], folder: Path) -> list[dict[str, str]]:
    """Draw all plots into a folder; give the file and the title of each."""
    drawn: list[dict[str, str]] = []
    with mpl.rc_context(_STYLE):
        if over_http := figures.get("http"):
            drawn += [_rates(over_http, folder / "http.svg")]
        if growth := figures.get("growth"):
            drawn += [
                _growth(growth, engine, folder / f"growth-{engine}.svg") for engine in dict.fromkeys(r["engine"] for r in growth)
            ]
    return drawn


def _rates(over_http: Mapping[str, Any], file: Path) -> dict[str, str]:
    """Draw what share of the limit trellis reaches, and the peer."""
    title = "Share of the limit in the same run"
    cases = [case for case in CASES if case.name in over_http and case.limit in over_http[case.name]]
    figure = Figure(figsize=(8.6, 0.6 + 0.52 * len(cases)), layout="constrained")
    axes = figure.subplots()
    for number, case in enumerate(cases):
        reps = over_http[case.name]
        for offset, name, colour in ((-0.2, OURS, _COLOURS[0]), (0.2, PEER, _COLOURS[1])):
            if name not in reps:
                continue
            share = ratio(reps[name], reps[case.limit])
            axes.barh(number + offset, share, 0.38, color=colour, label=name if not number else None)
            axes.annotate(f"{share:.2f}", (share, number + offset), (4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.axvline(1, color=_INK, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(cases)), [case.title for case in cases])
    axes.invert_yaxis()
    axes.set_xlabel(title + " (1: bare hello, or bare commits)")
    figure.legend(frameon=False, ncols=2, loc="outside upper right", labelcolor=_INK)
    _save(figure, file)
    return {"file": file.name, "title": title}


def _growth(rows: Any, engine: str, file: Path) -> dict[str, str]:
    """Draw each operation on logarithmic axes: what it costs by how many forums there are, a line for each shape."""
    title = f"Cost of an operation by the number of forums, {_ENGINES[engine]}"
    mine = {(shape, name): costs for (e, shape, name), costs in by_operation(rows).items() if e == engine}
    names = list(dict.fromkeys(name for _, name in mine))
    lines = -(-len(names) // _COLUMNS)
    figure = Figure(figsize=(11, 2.3 * lines + 0.5), layout="constrained")
    grid = figure.subplots(lines, _COLUMNS, squeeze=False, sharex=True, sharey=True)
    for number, axes in enumerate(grid.flat):
        if number >= len(names):
            axes.set_visible(False)
            continue
        axes.set_title(names[number], fontsize=9)
        for shape, colour in zip(SHAPES, _COLOURS, strict=True):
            if costs := mine.get((shape, names[number])):
                axes.loglog(list(costs), list(costs.values()), "o-", color=colour, markersize=3.5, linewidth=1.5, label=shape)
        axes.grid(color=_INK, alpha=0.25, linewidth=0.5)
        axes.minorticks_off()
    figure.legend(*grid.flat[0].get_legend_handles_labels(), frameon=False, ncols=4, loc="outside upper right", labelcolor=_INK)
    figure.supxlabel("forums", color=_INK, fontsize=10)
    figure.supylabel("µs", color=_INK, fontsize=10)
    _save(figure, file)
    return {"file": file.name, "title": title}


def _save(figure: Figure, file: Path) -> None:
    figure.savefig(file, transparent=True, metadata={"Date": None})
