"""Documents as text: read as YAML or JSON, with the line of everything, and written as YAML."""

from trellis.core.structure.text.lined import LinedMapping, Unreadable
from trellis.core.structure.text.yaml_text import LONGEST, read_document, write_yaml

__all__ = ["LONGEST", "LinedMapping", "Unreadable", "read_document", "write_yaml"]
