"""Mail: the outbox, the recipients of alarms, and the reasons why a mail was not sent (`reasons`)."""

from trellis.store.mail import reasons
from trellis.store.mail.recipients import Recipient, advance, find_recipient, list_behind, skip_alarms
from trellis.store.mail.rows import (
    Mail,
    Notice,
    claim,
    count_notices,
    count_waiting,
    drop_invitation,
    find_due,
    find_last,
    insert,
    is_alarm_mail_pending,
    purge,
    settle,
)
