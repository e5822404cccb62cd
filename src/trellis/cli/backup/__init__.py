"""The command `backup`: copies of a SQLite database, made now or again and again, and restored."""

from trellis.cli.backup.commands import backup_app

__all__ = ["backup_app"]
