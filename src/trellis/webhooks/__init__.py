"""Webhook delivery: event → outbox → attempt → log.

`worker` looks for work and leases endpoints; `outbox` moves events from the log into the outbox and reads due messages;
`delivery` sends them to an endpoint, using `signing`, `sender` and `guard`; `retries` schedules further attempts.
Other packages use `DeliveryWorker`, or `Background` in a process that serves.
"""

from trellis.webhooks.background import Background
from trellis.webhooks.worker import DeliveryWorker
