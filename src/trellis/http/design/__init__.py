"""The look that the panel and the reference share: colours, type and buttons in one style sheet, the mark, the top of the menu."""

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
TEMPLATES: Final = Path(__file__).parent / "templates"
