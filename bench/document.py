"""The page of the documentation into which the figures are written, and where they are kept."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.report import markdown

ROOT: Final = Path(__file__).parent.parent
DOCUMENT: Final = ROOT / "docs" / "benchmarks.md"
KEPT: Final = ROOT / "docs" / "benchmarks"
_START: Final = "<!-- figures: start -->"
_END: Final = "<!-- figures: end -->"


def told(document: str, figures: Mapping[str, Any] | None) -> str:
    """Put the measured part into the text of the document. Raises ValueError if it has no place for it."""
    before, start, rest = document.partition(_START)
    _, end, after = rest.partition(_END)
    if not start or not end:
        raise ValueError(f"The document needs '{_START}' and '{_END}'.")
    return f"{before}{start}\n\n{markdown(figures)}\n{end}{after}"
