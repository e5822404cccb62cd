"""Backups of a SQLite database: copying it while it is in use, verifying a copy, and replacing the database by one."""

from trellis.store.backup.copy import Damaged, backup
from trellis.store.backup.restore import NotRestorable, prepare_restore
