"""The figures of trellis beside other services as a table, and their place in the documentation."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bench.document import KEPT, put
from bench.others.cases import BOUND, CASES, OURS
from bench.ratios import middle, ratio
from bench.report import Table, as_markdown, verdict

FILE: Final = KEPT / "others.json"
_PLACE: Final = "others"  # its name in the document


def told(document: str, figures: Mapping[str, Any] | None) -> str:
    """Put the table into the text of the document. Raises ValueError if it has no place for it."""
    return put(document, _PLACE, markdown(figures))


def table(figures: Mapping[str, Any]) -> Table:
    """Return the table of these figures: a row for each case and service."""
    return Table(
        "Other services",
        ("case and service", "req/s", "p50 ms", "p99 ms", "CPU µs", "MiB", "trellis : it", "by CPU", f"≥ {BOUND:g} ×"),
        tuple(_rows(figures["cases"])),
    )


def markdown(figures: Mapping[str, Any] | None) -> str:
    """Write the measured part of the section."""
    if figures is None:
        return "Nothing has been measured yet: `make bench-others` writes this part.\n"
    of, plan = figures["machine"], figures["plan"]
    services = ", ".join(f"{name} {version}" for name, version in figures["services"].items())
    skipped = "".join(f" {name} was skipped: {reason}" for name, reason in figures["skipped"].items())
    return (
        f"Measured on {figures['date']} at commit {of['commit']} (`make bench-others`): {services}; {of['cpu']}, "
        f"{of['cores']} cores, {of['memory']}; {of['system']}, {of['disk']}; {of['python']}, node {figures['node']}; "
        f"{plan['forums']:,} forums, {plan['repetitions']} × {plan['seconds']} s each. Load average before the run: "
        f"{of['load']}.{skipped} Every repetition is in [others.json](benchmarks/others.json).\n\n"
    ) + as_markdown(table(figures))


def _rows(measured: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for case in CASES:
        services = measured.get(case.name, {})
        for name, reps in services.items():
            ratios = ("", "", "")
            if name != OURS:
                times = ratio(services[OURS], reps)
                ratios = (f"{times:.1f} ×", f"{ratio(reps, services[OURS], 'cpu'):.1f} ×", verdict(times, BOUND))
            yield (
                f"{case.title}: {name}",
                f"{middle(reps, 'rate'):,.0f}",
                f"{middle(reps, 'p50') / 1000:.2f}",
                f"{middle(reps, 'p99') / 1000:.2f}",
                f"{middle(reps, 'cpu'):,.0f}",
                f"{middle(reps, 'memory') / 2**20:.0f}",
                *ratios,
            )
