"""The shared design of the panel and the reference: colours, type and buttons in one style sheet, the logo, the top of the menu."""

from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
TEMPLATES: Final = Path(__file__).parent / "templates"
