"""Mail to administrators: the outbox, the texts, and the outcomes of attempts. `trellis.mail` sends it."""

from trellis.core.mail.outbox import Draft, begin_attempt, fill, has_work, settle
from trellis.core.mail.text import write_test
