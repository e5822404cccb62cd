"""Structure documents: exporting the structure of a community as a document, and planning and applying such a document."""

from trellis.core.nodes import DEEPEST
from trellis.core.structure.document import FORMAT
from trellis.core.structure.operations import operations
from trellis.core.structure.run import MAX_DELETES
from trellis.core.structure.schema import build_schema
from trellis.core.structure.text import LARGEST_DOCUMENT, MOST_ENTRIES, LinedMapping, Unreadable, read_document, write_yaml
