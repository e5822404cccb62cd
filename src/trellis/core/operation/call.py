"""A request to run an operation, and the progress of one that takes long."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from trellis.core.actor import Actor, Approval
from trellis.core.fields import Input
from trellis.core.passwords import KEYS, PEOPLE, Digests
from trellis.traces import log_fields


class Call(NamedTuple):  # like Outcome and Result: a tuple, since a frozen dataclass takes five times as long to create
    """A request to run an operation.

    `target` is the id of the record that it is about, if the operation has one. `raw` maps names to the values sent. `expected` are
    the versions that the record may have (If-Match), `("*",)` for any. `token` and `fingerprint` are the Idempotency-Key and a
    digest of its request; `idempotency_key` is recorded in the event. Long operations call `progress` with the amount done and the
    total.
    `waits_as` is the lane in which passwords in the call wait for their digests, if it is not the lane of its actor: see lanes.py.
    Nodes that the call creates or changes are `managed_by` the structure document with this name. The gate sets `digests` to the
    digests of passwords in inner calls, by password and the digest stored until now, and `proposed` to the input of the call that a
    proposal is about, if it has read that. `approval` is set if somebody else had to approve the call. `again`: the call reads once
    more for the same request, which is not another use of a grant. `traceparent` names the trace that the call belongs to, and the
    span that caused it. `address` is the address from which a key's call was sent to the service. `check_plan` is given what a dry
    run of the call would return, once a write is done and before it is committed, and may refuse it.
    """

    operation: str
    actor: Actor
    raw: Mapping[str, Any] = MappingProxyType({})
    target: int | None = None
    expected: tuple[str, ...] = ()
    request_id: str | None = None
    reason: str | None = None
    token: str | None = None
    fingerprint: str = ""
    idempotency_key: str | None = None
    change_set: str | None = None
    progress: Callable[[int, int], None] = lambda _done, _all: None
    waits_as: str = ""
    managed_by: str | None = None
    digests: Digests = MappingProxyType({})
    approval: Approval | None = None
    proposed: Input | None = None
    again: bool = False
    traceparent: str | None = None
    address: str = ""
    check_plan: Callable[[Any], None] | None = None

    def build_inner(
        self, operation: str, raw: Mapping[str, Any], target: int | None = None, expected: tuple[str, ...] = ()
    ) -> "Call":
        """Return a call to run as part of this one, for the same caller and reason; its progress is not reported."""
        no_progress = self._field_defaults["progress"]
        return self._replace(operation=operation, raw=raw, target=target, expected=expected, token=None, progress=no_progress)

    @property
    def log_fields(self) -> dict[str, str | None]:
        """The fields that a log line about the call contains."""
        return log_fields(self.request_id, self.traceparent)

    @property
    def lane(self) -> str:
        """The lane in which passwords in the call wait for their digests."""
        return self.waits_as or f"{KEYS if self.actor.type == 'key' else PEOPLE}/{self.actor.type}/{self.actor.id}"


class Progress:
    """The progress of a long operation: counts what is `done` of `total`, and reports it to the call."""

    def __init__(self, call: Call, total: int) -> None:
        self._call = call
        self._done = 0
        self._total = total

    def done(self, more: int = 1) -> None:
        """Add to what has been done, and report it."""
        self._done += more
        self._call.progress(self._done, self._total)
