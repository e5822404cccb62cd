"""The field type of the time at which a key expires, or a grant ends."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from trellis.core.fields import Invalid, Timestamp, Type, quote, shift_timestamp
from trellis.sentences import say


@dataclass(frozen=True, slots=True)
class Expiry(Type):
    """When a key expires: a timestamp, a duration from now such as 90d or 12h, or null for never."""

    def parse(self, raw: Any) -> str | timedelta | None:
        if raw in (None, "", "never"):
            return None
        text = raw.strip() if isinstance(raw, str) else ""
        if text[-1:] in _SPANS and text[:-1].isdecimal() and len(text) <= 6 and 0 < int(text[:-1]) <= 36_500:
            return timedelta(**{_SPANS[text[-1]]: int(text[:-1])})
        try:
            return Timestamp().parse(raw)
        except Invalid:
            raise Invalid(
                say("must be a duration such as 90d or 12h, a timestamp in ISO 8601, or null for never, not {raw}.", raw=quote(raw))
            ) from None

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["90d", "2026-12-31T00:00:00Z"]}


_SPANS: Final[Mapping[str, str]] = {"d": "days", "h": "hours"}


def settle_expiry(expires: str | timedelta | None, now: str) -> str | None:
    """Return the time that an expiry stands for. A duration starts `now`."""
    return shift_timestamp(now, expires) if isinstance(expires, timedelta) else expires


def settle_spans(raw: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return the settings of a key as they were typed, with each duration replaced by the time that it stood for at `at`."""

    def settle(typed: Any) -> Any:
        try:
            return settle_expiry(Expiry().parse(typed), at)
        except Invalid:
            return typed

    def settle_bound(bound: Any) -> Any:
        return {**bound, "until": settle(bound["until"])} if bound and "until" in bound else bound

    settled = {name: settle(value) if name == "expires" else value for name, value in raw.items()}
    bounds = {name: settle_bound(bound) for name, bound in raw.get("bounds", {}).items()}
    return settled | ({"bounds": bounds} if bounds else {})
