"""Mail to administrators: the outbox, the texts, and the outcomes of attempts. `trellis.mail` sends it."""

from trellis.core.mail.outbox import Draft, fill, has_work, settle, take
from trellis.core.mail.text import write_test

__all__ = ["Draft", "fill", "has_work", "settle", "take", "write_test"]
