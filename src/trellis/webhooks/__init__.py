"""Webhook delivery: event → outbox → attempt → log.

`worker` looks for work and holds endpoints; `outbox` moves events from the log into the outbox and reads what is due;
`delivery` sends it to one endpoint, by way of `signing`, `sender` and `guard`; `retries` says what becomes of it.
From outside, use `Worker`, or `Background` beside serving.
"""

from trellis.webhooks.background import Background
from trellis.webhooks.worker import Worker

__all__ = ["Background", "Worker"]
