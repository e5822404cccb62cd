"""Mail to administrators: what is to be sent, what it says, and what becomes of it. `trellis.mail` sends it."""

from trellis.core.mail.outbox import Draft, fill, has_work, settle, take
from trellis.core.mail.text import write_test

__all__ = ["Draft", "fill", "has_work", "settle", "take", "write_test"]
