"""Writes figures as tables: what was to be reached, the cases over HTTP, and the cost as the work grows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.cases import CASES, GROWTHS, MEMORY, MEMORY_OF_CASES, OURS, PACED, PAIRS, PEER, TARGETS, Case, Target
from bench.forest import SHAPES
from bench.ratios import middle, ratio, spread
from bench.start import STARTS

Figures = Mapping[str, Any]
Grown = Mapping[tuple[str, str, str], Mapping[int, float]]
_ENGINES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_TITLES: Final = {case.name: case.title for case in CASES}


@dataclass(frozen=True, slots=True)
class Table:
    """A table, as it is printed and as it stands in the document. The first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables(figures: Figures) -> list[Table]:
    """Return all tables that these figures make."""
    over_http = figures.get("http", {})
    grown = by_operation(figures.get("growth", ()))
    found = [
        Table(
            "To reach",
            ("what", "bound", "measured", ""),
            (*_targets(over_http), *_paced(figures), *_pairs(figures), *_growths(grown), *_memory(figures), *_starts(figures)),
        ),
        Table(
            "Over HTTP",
            ("case", "req/s", "p50 ms", "p99 ms", "CPU µs", "MiB", "of the limit", "before", "of the peer"),
            _cases(over_http, figures.get("before", {}).get("shares", {})),
        ),
        Table("At a fixed rate", ("load and contestant", "req/s", "p50 ms", "p99 ms"), _paced_rows(figures)),
        Table("All contestants", ("case and contestant", "req/s", "± %", "p50 ms", "p99 ms", "CPU µs", "MiB"), _all(over_http)),
        Table("Starts", ("what", "CPU ms", "the import beside it", "CPU ms", "ratio"), _start_rows(figures)),
        Table("Side by side", ("what", "ms", "beside", "ms", "ratio"), _pair_rows(figures)),
        *_growth_tables(grown),
    ]
    return [table for table in found if table.rows]


def markdown(figures: Figures | None) -> str:
    """Write the measured part of docs/benchmarks.md."""
    if figures is None:
        return "Nothing has been measured yet: `make bench` writes this part.\n"
    parts = [_machine(figures)]
    parts += [f"### {table.title}\n\n{as_markdown(table)}" for table in tables(figures)]
    parts += [f"![{plot['title']}](benchmarks/{plot['file']})\n" for plot in figures.get("plots", ())]
    return "\n".join(parts)


def as_markdown(table: Table) -> str:
    """Write a table in Markdown."""
    lines = [table.columns, ("---", *("---:" for _ in table.columns[1:])), *table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _machine(figures: Figures) -> str:
    of = figures["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in of["packages"].items())
    cores = f"{of['cores']} core" + ("s" if of["cores"] != 1 else "")
    shared = "" if of["usable"] > 1 else " Server and load shared one core, since there is no other."
    return (
        f"Measured on {figures['date']} at commit {of['commit']} (`make bench`, {figures['mode']}): {of['cpu']}, {cores}, "
        f"governor {of['governor']}, {of['memory']}; {of['system']}, {of['kernel']}, {of['disk']}; {of['python']}, "
        f"SQLite {of['sqlite']}; {packages}; wrk {of['wrk']}. Load average before the run: {of['load']}.{shared} "
        "Every repetition is in [figures.json](benchmarks/figures.json).\n"
    )


# --- what was to be reached ---------------------------------------------------------------------------------------


def verdict(measured: float, bound: float, *, at_most: bool = False) -> str:
    """Return whether a bound was kept, or by how much it was missed."""
    if at_most:
        return "reached" if measured <= bound else f"over by {measured / bound - 1:.0%}"
    return "reached" if measured >= bound else f"short by {1 - measured / bound:.0%}"


def _targets(over_http: Figures) -> Iterator[tuple[str, ...]]:
    for target in TARGETS:
        reps = over_http.get(target.case)
        if reps is None:
            continue
        if target.against in reps:
            yield _compared(target, ratio(reps[OURS], reps[target.against]))


def _compared(target: Target, value: float) -> tuple[str, ...]:
    bound = f"≥ {target.bound:.2f}" if target.bound < 1 else f"≥ {target.bound:g} ×"
    told = f"{value:.2f}" if target.bound < 1 else f"{value:.1f} ×"
    return f"{_TITLES[target.case]}, to {target.against}", bound, told, verdict(value, target.bound)


def _paced(figures: Figures) -> Iterator[tuple[str, ...]]:
    for load in PACED:
        if found := figures.get("paced", {}).get(load.name):
            value = ratio(found["reps"][OURS], found["reps"]["hello"], "p99")
            what = f"p99 of {load.title} at half of the best rate, to hello's at that rate"
            yield what, f"≤ {load.bound:g} ×", f"{value:.1f} ×", verdict(value, load.bound, at_most=True)


def _growths(grown: Grown) -> Iterator[tuple[str, ...]]:
    for growth in GROWTHS:
        for operation in growth.operations:
            found = [
                (costs[max(costs)] / costs[min(costs)], engine, shape, min(costs), max(costs))
                for (engine, shape, name), costs in grown.items()
                if name == operation and len(costs) > 1
            ]
            if found:
                value, engine, shape, least, most = max(found)
                what = f"{operation}, {most:,} to {least:,}; worst: {shape}, {_ENGINES[engine]}"
                yield what, f"≤ {growth.bound:g} ×", f"{value:.2f} ×", verdict(value, growth.bound, at_most=True)


def _memory(figures: Figures) -> Iterator[tuple[str, ...]]:
    found = [(f"over {worker['forums']:,} forums", worker["memory"], MEMORY) for worker in figures.get("workers", ())]
    cases = [(rep["memory"], _TITLES.get(case, case)) for case, reps in figures.get("http", {}).items() for rep in reps[OURS]]
    if cases:
        most, case = max(cases)
        found.append((f"most: {case}", most, MEMORY_OF_CASES))
    for what, memory, bound in found:
        told = f"{memory / 2**20:.0f} MiB"
        yield f"memory of a worker, {what}", f"< {bound // 2**20} MiB", told, verdict(memory, bound, at_most=True)


def _starts(figures: Figures) -> Iterator[tuple[str, ...]]:
    for start in STARTS:
        if reps := figures.get("start", {}).get(start.name):
            value = _times(reps)
            what = f"{start.title}, processor time to `{start.yardstick}`"
            yield what, f"≤ {start.bound:g} ×", f"{value:.2f} ×", verdict(value, start.bound, at_most=True)


def _times(reps: Sequence[Mapping[str, float]]) -> float:
    return median(rep["cpu"] / rep["yardstick"] for rep in reps)


def _pairs(figures: Figures) -> Iterator[tuple[str, ...]]:
    titles = {pair.name: pair for pair in PAIRS}
    for row in figures.get("pairs", ()):
        pair, value = titles[row["pair"]], ratio(row["reps"], row["reps"], "one", "other")
        what = f"{pair.title}, to {pair.other}; {_ENGINES[row['engine']]}"
        yield what, f"≤ {pair.bound:g} ×", f"{value:.2f} ×", verdict(value, pair.bound, at_most=True)


# --- side by side -------------------------------------------------------------------------------------------------


def _pair_rows(figures: Figures) -> tuple[tuple[str, ...], ...]:
    titles = {pair.name: pair for pair in PAIRS}
    return tuple(
        (
            f"{titles[row['pair']].title}; {_ENGINES[row['engine']]}",
            f"{middle(row['reps'], 'one') * 1000:,.4g}",
            titles[row["pair"]].other,
            f"{middle(row['reps'], 'other') * 1000:,.4g}",
            f"{ratio(row['reps'], row['reps'], 'one', 'other'):.2f} ×",
        )
        for row in figures.get("pairs", ())
    )


# --- starts -------------------------------------------------------------------------------------------------------


def _start_rows(figures: Figures) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            start.title,
            f"{middle(reps, 'cpu') * 1000:.0f}",
            f"`{start.yardstick}`",
            f"{middle(reps, 'yardstick') * 1000:.0f}",
            f"{_times(reps):.2f} ×",
        )
        for start in STARTS
        if (reps := figures.get("start", {}).get(start.name))
    )


# --- over HTTP ----------------------------------------------------------------------------------------------------


def _known(over_http: Figures) -> Iterator[tuple[Case, Mapping[str, Sequence[Mapping[str, float]]]]]:
    for case in CASES:
        if case.name in over_http:
            yield case, over_http[case.name]


def _cases(over_http: Figures, before: Mapping[str, float]) -> tuple[tuple[str, ...], ...]:
    rows = []
    for case, reps in _known(over_http):
        ours = reps[OURS]
        limit = f"{ratio(ours, reps[case.limit]):.2f}" if case.limit is not None and case.limit in reps else "–"
        peer = f"{ratio(ours, reps[PEER]):.1f} ×" if PEER in reps else "–"
        last = f"{before[case.name]:.2f}" if case.name in before else "–"
        rows.append((case.title, *_middles(ours), limit, last, peer))
    return tuple(rows)


def _all(over_http: Figures) -> tuple[tuple[str, ...], ...]:
    rows = []
    for case, contestants in _known(over_http):
        for name, reps in contestants.items():
            rate, *others = _middles(reps)
            rows.append((f"{case.title}: {name}", rate, f"{spread(reps) / 2:.0%}".rstrip("%"), *others))
    return tuple(rows)


def _middles(reps: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    memory = middle(reps, "memory")
    return (
        f"{middle(reps, 'rate'):,.0f}",
        f"{middle(reps, 'p50') / 1000:.2f}",
        f"{middle(reps, 'p99') / 1000:.2f}",
        f"{middle(reps, 'cpu'):.1f}",
        f"{memory / 2**20:.0f}" if memory else "–",
    )


def _paced_rows(figures: Figures) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            f"{load.title}: {name}",
            f"{found['rate']:,.0f}",
            f"{middle(reps, 'p50') / 1000:.2f}",
            f"{middle(reps, 'p99') / 1000:.2f}",
        )
        for load in PACED
        if (found := figures.get("paced", {}).get(load.name))
        for name, reps in found["reps"].items()
    )


# --- growth -------------------------------------------------------------------------------------------------------


def by_operation(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], dict[int, float]]:
    """Sort the medians of growth: (engine, shape, operation) → number of forums → microseconds."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["engine"], row["shape"], row["operation"]), {})[row["forums"]] = row["median"]
    return found


def _growth_tables(grown: Grown) -> Iterator[Table]:
    for engine, shape in dict.fromkeys((engine, shape) for engine, shape, _ in grown):
        mine = {name: costs for (e, s, name), costs in grown.items() if (e, s) == (engine, shape)}
        sizes = sorted({size for costs in mine.values() for size in costs})
        rows = tuple(
            (
                name,
                *(f"{costs[size]:,.0f}" if size in costs else "–" for size in sizes),
                f"{costs[max(costs)] / costs[min(costs)]:.2f} ×",
            )
            for name, costs in mine.items()
        )
        title = f"Growth on {_ENGINES[engine]}, {shape} ({SHAPES[shape]}): µs for one operation"  # type: ignore[index]  # as written
        yield Table(title, ("operation", *(f"{size:,}" for size in sizes), "last to first"), rows)
