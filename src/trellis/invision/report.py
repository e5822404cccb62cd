"""The report of an import, as text and HTML: what was read, what is written, and what is lost or needs a look, node by node."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trellis.core.fields import escape_unsafe, isolate


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node: its id and address in the old community, its names from the top, its external id here, and notes about it.

    A long path has `…` in place of its middle.
    """

    id: int
    path: tuple[str, ...]
    url: str
    external_id: str
    notes: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def looks(self) -> tuple[str, ...]:
        """The notes that somebody should look at, and first the reason if the node is left out."""
        return (f"Left out: {self.left_out}", *self.notes) if self.left_out else self.notes

    @property
    def label(self) -> str:
        """The names from the top, joined."""
        return isolate(" > ".join(self.path))


@dataclass(slots=True)
class KindReport:
    """The part of the report about one kind. `lost` are our members that the answers of the old community do not contain."""

    name: str
    title: str
    singular: str
    lost: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)
    rows: list[NodeReport] = field(default_factory=list)

    @property
    def written(self) -> int:
        """How many nodes are in the document."""
        return sum(not row.left_out for row in self.rows)

    @property
    def left_out(self) -> int:
        """How many nodes were read and are not in the document."""
        return len(self.rows) - self.written


@dataclass(slots=True)
class Report:
    """The whole report. `source` describes where the answers are from."""

    source: str
    name: str = ""
    release: str = ""
    cautions: list[str] = field(default_factory=list)
    sections: list[KindReport] = field(default_factory=list)

    @property
    def community(self) -> str:
        """The name of the old community, its source and its release, as far as they are known."""
        release = f", release {self.release}" if self.release else ""
        return f"{isolate(self.name)} ({self.source}{release})" if self.name else f"{self.source}{release}"

    def describe_looks(self) -> str:
        """Describe how many nodes need a look."""
        count = sum(bool(row.looks) for section in self.sections for row in section.rows)
        return "1 node needs a look" if count == 1 else f"{count:,} nodes need a look"

    def describe_counts(self) -> str:
        """Describe how many nodes of each kind are in the document, and how many are left out."""
        parts = [
            f"1 {section.singular}" if section.written == 1 else f"{section.written:,} {section.title.lower()}"
            for section in self.sections
            if section.written
        ]
        left_out = sum(section.left_out for section in self.sections)
        return (", ".join(parts) or "nothing") + (f"; {left_out:,} left out" if left_out else "")


def write_text(report: Report) -> str:
    """Write the report as text."""
    return escape_unsafe("\n".join(_list_lines(report))) + "\n"


def _list_lines(report: Report) -> Iterator[str]:
    yield f"Moving in from {report.community}"
    yield f"{report.describe_looks()}."
    yield from (f"! {caution}" for caution in report.cautions)
    for section in report.sections:
        yield ""
        left_out = f", {section.left_out:,} left out" if section.left_out else ""
        yield f"{section.title}: {section.written:,} written{left_out}."
        if section.lost:
            lost = ", ".join(section.lost)
            yield f"  Not reported by the old community: {lost}."
            yield "  These members get their defaults, or keep the values that they have here."
        yield from (f"  ! {note}" for note in section.notes)
        for row in section.rows:
            yield f"  {row.id:>6}  {row.label}"
            yield from (f"          - {look}" for look in row.looks)


def write_html(report: Report) -> str:
    """Write the report as a page of HTML that needs no other files."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  # start-up time: text needs no template

    environment = Environment(
        loader=PackageLoader("trellis.invision"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["count"] = _count
    return environment.get_template("report.html").render(report=report)


def _count(number: Any) -> str:
    return f"{number:,}"
