"""The page of the documentation into which the figures are written, and where they are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import markdown

ROOT: Final = Path(__file__).parent.parent
DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"
KEPT: Final = ROOT / "docs" / "benchmarks"
_FIGURES: Final = "figures"  # the name of its place in the document


def told(document: str, figures: Mapping[str, Any] | None) -> str:
    """Put the measured part into the text of the document. Raises ValueError if it has no place for it."""
    return put(document, _FIGURES, markdown(figures))


def put(document: str, place: str, text: str) -> str:
    """Put a text between two comments of a document that name its place. Raises ValueError if there are none."""
    start, end = (f"<!-- {place}: {which} -->" for which in ("start", "end"))
    before, found, rest = document.partition(start)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"The document needs '{start}' and '{end}'.")
    return f"{before}{start}\n\n{text}\n{end}{after}"
