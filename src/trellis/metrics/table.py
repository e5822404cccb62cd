"""The metrics by name: one table of what each of them says."""

from dataclasses import dataclass
from typing import Final, Literal

PREFIX: Final = "trellis_"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its labels.

    A counter only grows, and what ended workers have counted stays in it. A gauge is what is so now, in the workers that live. A
    histogram is a counter for each class of durations.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    doc: str
    labels: tuple[str, ...] = ()


METRICS: Final = (
    Metric(
        "requests", "counter", "Requests answered, by interface (api, mcp, admin), operation or page, and class of status.",
        ("interface", "operation", "status"),
    ),
    Metric(
        "request_duration_seconds", "histogram",
        "How long requests took, from their head to the last byte handed over; of a page of the panel, to the first.",
        ("interface", "operation"),
    ),
    Metric("refusals", "counter", "Requests refused or failed, by reason and id of the key; 0 is none.", ("reason", "key")),
    Metric(
        "server_refusals", "counter",
        "What the server refused before there was a request, or in the middle of its body, by status and reason.",
        ("status", "reason"),
    ),
    Metric("cache_lookups", "counter", "Reads, by whether their answer was in memory: hit or miss.", ("result",)),
    Metric("cache_bytes", "gauge", "Bytes of answers in memory."),
    Metric("writes", "counter", "Writes that were committed, those of bookkeeping among them."),
    Metric("commits", "counter", "Commits; writes that wait together share one."),
    Metric("commit_seconds", "counter", "Seconds that transactions took from their beginning to their end."),
    Metric("write_lock_wait_seconds", "counter", "Seconds that writers waited for the lock that all processes share."),
    Metric("writes_waiting", "gauge", "Writes that wait for their turn."),
    Metric("process_cpu_seconds", "counter", "Seconds of processor time."),
    Metric("process_resident_bytes", "gauge", "Bytes of memory that processes hold."),
    Metric("process_open_files", "gauge", "Open files and connections."),
    Metric("workers", "gauge", "Processes that serve."),
    Metric("workers_ready", "gauge", "Those of them whose `/readyz` answers 200."),
    Metric("database_up", "gauge", "Whether the database can be read: 1 or 0. With 0, what is read from it is missing here."),
    Metric("database_bytes", "gauge", "Bytes of the database, on SQLite with its log."),
    Metric("events", "counter", "The number of the newest event."),
    Metric("proposals_open", "gauge", "Proposals that wait for a decision."),
    Metric("webhook_lag_seconds", "gauge", "For how long the oldest message that a webhook has not taken waits.", ("webhook",)),
    Metric("mails_waiting", "gauge", "Mail that waits to be sent, or to be tried again."),
    Metric("webhook_failures", "gauge", "Failed attempts in a row, by webhook.", ("webhook",)),
    Metric("last_backup_timestamp_seconds", "gauge", "When `trellis backup` last copied the database; missing if it never has."),
    Metric("info", "gauge", "Always 1, with the version of Trellis and the engine of its database.", ("version", "engine")),
)  # fmt: skip
