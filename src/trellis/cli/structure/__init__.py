"""The commands about the structure as a document: export it, plan a document, apply it, print the schema."""

from trellis.cli.structure.commands import apply_app, export, plan_app, schema
from trellis.cli.structure.files import write_whole
