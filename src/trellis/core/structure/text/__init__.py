"""Documents as text: reads them as YAML or JSON, with line numbers, and writes them as YAML."""

from trellis.core.structure.text.lined import MOST_ENTRIES, LinedMapping, Unreadable, tell_too_many_entries
from trellis.core.structure.text.yaml_text import LARGEST_DOCUMENT, read_document, write_yaml
