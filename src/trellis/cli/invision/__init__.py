"""The commands about Invision Community: bring such a community over, or write ours as its API would answer it."""

from trellis.cli.invision.commands import export_app, import_app

__all__ = ["export_app", "import_app"]
