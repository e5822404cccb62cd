"""The command `backup`: makes copies of a SQLite database, once or on a schedule, and restores them."""

from trellis.cli.backup.commands import backup_app
