"""May this key …? The same judgement as over the API, with the reason."""

from typing import Any

import pytest

from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.gate import Gate
from trellis.core.keys.keyring import Keyring, authenticate
from trellis.errors import Refused


@pytest.mark.parametrize(
    ("terms", "asked", "reason"),
    [
        ({}, {"operation": "forums.list"}, None),
        ({}, {"operation": "core.hello"}, None),
        ({}, {"operation": "forums.delete"}, "NO_PERMISSION"),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list", "address": "192.0.2.9"}, None),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list"}, None),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list", "address": "198.51.100.9"}, "IP_ADDRESS_NOT_ALLOWED"),
        ({"addresses": ["2001:db8::/48"]}, {"operation": "core.hello", "address": "198.51.100.9"}, "IP_ADDRESS_NOT_ALLOWED"),
        ({"expires": "1d"}, {"operation": "forums.list"}, None),
        ({"expires": "1d"}, {"operation": "forums.list", "at": "2026-02-01T09:30:00Z"}, "INVALID_API_KEY"),
        ({"expires": "1d"}, {"operation": "forums.list", "at": "2026-02-01T09:29:59Z"}, None),
    ],
)
def test_it_answers_with_the_reason(
    run: Run, key: MakeKey, gate: Gate, terms: dict[str, Any], asked: dict[str, str], reason: str | None
) -> None:
    text = key("forums.list", **terms)
    answer = run("keys.may", 1, **asked)
    assert (answer["may"], answer["reason"]) == (reason is None, reason)
    assert answer["detail"].startswith("Yes: " if reason is None else "No: ")
    if reason == "IP_ADDRESS_NOT_ALLOWED":  # and the API judges so too
        with gate.store.reading() as tx, pytest.raises(Refused, match=reason):
            Keyring().admit(authenticate(tx, text, gate.now()), text, asked["address"], gate.now(), None)


def test_a_revoked_key_may_nothing_and_the_answer_says_why(run: Run, key: MakeKey, clock: Clock) -> None:
    key("*")
    run("keys.revoke", 1, reason="Leaked.")
    clock.move(hours=1)
    answer = run("keys.may", 1, operation="core.hello")
    assert answer["reason"] == "INVALID_API_KEY"
    assert "revoked on 31 January 2026, 09:30 UTC: Leaked." in answer["detail"]


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"operation": "keys.create"}, "UNKNOWN_OPERATION"),
        ({"operation": "forums.lost"}, "UNKNOWN_OPERATION"),
        ({}, "MISSING_VALUE"),
        ({"operation": "forums.list", "address": "home"}, "INVALID_VALUE"),
        ({"operation": "forums.list", "at": "soon"}, "INVALID_VALUE"),
    ],
)
def test_what_cannot_be_asked_is_refused(run: Run, key: MakeKey, asked: dict[str, str], refusal: str) -> None:
    key("*")
    with pytest.raises(Refused) as refused:
        run("keys.may", 1, **asked)
    assert refused.value.message == refusal


def test_an_unknown_key_is_refused(run: Run) -> None:
    with pytest.raises(Refused, match=r"^INVALID_ID"):
        run("keys.may", 9, operation="forums.list")
