"""The table of metrics, with the meaning and the labels of each."""

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "trellis_"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its labels.

    A counter only grows, and includes what workers that have ended have counted. A gauge is a current value, summed over the
    workers that are alive. A histogram is a counter for each class of durations.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    doc: str
    labels: tuple[str, ...] = ()


METRICS: Final = (
    Metric(
        "requests", "counter",
        "Requests answered, by interface (api, mcp, admin), operation or page, and class of status (such as 2xx).",
        ("interface", "operation", "status"),
    ),
    Metric(
        "request_duration_seconds", "histogram",
        "How long requests took, from their headers to the last byte of the response; for pages of the panel, to the first byte.",
        ("interface", "operation"),
    ),
    Metric(
        "refusals", "counter",
        "Requests that were refused or failed, by reason and id of the key; 0 means no key.",
        ("reason", "key"),
    ),
    Metric(
        "server_refusals", "counter",
        "Requests and connections that the server refused in place of the application, by status and reason.",
        ("status", "reason"),
    ),
    Metric("cache_lookups", "counter", "Reads, by whether their response was in memory: hit or miss.", ("result",)),
    Metric("cache_bytes", "gauge", "Bytes of responses in memory."),
    Metric("writes", "counter", "Writes that were committed, including the request log, the last use of keys and housekeeping."),
    Metric("commits", "counter", "Commits; writes that wait together share one."),
    Metric("commit_seconds", "counter", "Seconds that transactions took, from beginning to end."),
    Metric("write_lock_wait_seconds", "counter", "Seconds that writers waited for the lock that all processes share."),
    Metric("writes_waiting", "gauge", "Writes that are waiting for their turn."),
    Metric("process_cpu_seconds", "counter", "Seconds of processor time."),
    Metric("process_resident_bytes", "gauge", "Bytes of memory that the processes occupy."),
    Metric("process_open_files", "gauge", "Open files and connections."),
    Metric("workers", "gauge", "Processes that are serving."),
    Metric("workers_ready", "gauge", "Serving processes whose `/readyz` returns 200."),
    Metric(
        "database_up", "gauge",
        "Whether the database can be read: 1 or 0. While it is 0, the metrics that are read from the database are missing.",
    ),
    Metric("database_bytes", "gauge", "Size of the database in bytes; on SQLite, including its write-ahead log."),
    Metric("events", "counter", "The number of the newest event."),
    Metric("proposals_open", "gauge", "Proposals that are waiting for a decision."),
    Metric(
        "webhook_lag_seconds", "gauge",
        "How long the oldest message that a webhook has not accepted yet has been waiting.",
        ("webhook",),
    ),
    Metric("mails_waiting", "gauge", "Mail that is waiting to be sent or retried."),
    Metric("webhook_failures", "gauge", "Failed attempts in a row, by webhook.", ("webhook",)),
    Metric("last_backup_timestamp_seconds", "gauge", "When `trellis backup` last copied the database; missing if it never has."),
    Metric(
        "info", "gauge",
        "Always 1, with the version of Trellis and the engine of its database as labels.",
        ("version", "engine"),
    ),
)  # fmt: skip
