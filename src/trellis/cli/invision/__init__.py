"""The commands for Invision Community: import a community from it, or export ours as the answers of its API."""

from trellis.cli.invision.commands import export_app, import_app
