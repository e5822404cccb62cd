"""Large answers: sent in parts, counted while they are read, and refused when too much is under way."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from trellis.errors import Refused
from trellis.http.sending import PART, BytesUnderWay, send_body


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 2 * PART - 1, 2 * PART, 2 * PART + 1, 10 * PART + 7])
def test_a_body_is_sent_in_parts_that_make_it_up(size: int) -> None:
    body, sent = bytes(number % 251 for number in range(size)), list[MutableMapping[str, Any]]()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(send_body(send, body))
    assert b"".join(message["body"] for message in sent) == body
    assert [bool(message.get("more_body")) for message in sent] == [True] * (len(sent) - 1) + [False]
    assert all(len(message["body"]) <= PART for message in sent)
    assert len(sent) == max(1, -(-size // PART))


def test_a_body_is_counted_once_however_many_read_it() -> None:
    under_way, body = BytesUnderWay(10 * PART), bytes(2 * PART)
    with under_way.hold("a", body), under_way.hold("a", body), under_way.hold("b", body):
        assert under_way.total == len(body)
        for caller in ("a", "b", "c"):
            under_way.admit(caller, body)
    assert under_way.total == 0


def test_small_bodies_are_not_counted() -> None:
    under_way = BytesUnderWay(0)
    with under_way.hold("a", bytes(PART)):
        assert under_way.total == 0
        under_way.admit("a", bytes(PART))


def test_a_caller_may_have_a_quarter_of_all() -> None:
    under_way, bodies = BytesUnderWay(16 * PART), [bytes(2 * PART) for _ in range(3)]
    with under_way.hold("a", bodies[0]):
        under_way.admit("a", bodies[1])
        with under_way.hold("a", bodies[1]):
            with pytest.raises(Refused, match="TOO_MUCH_UNREAD: 262,144 bytes of earlier answers are waiting to be read by this"):
                under_way.admit("a", bodies[2])
            under_way.admit("a", bodies[0])  # which is under way already
            under_way.admit("b", bodies[2])
        under_way.admit("a", bodies[2])


def test_all_together_have_a_bound_and_one_answer_may_always_be_read() -> None:
    under_way, bodies = BytesUnderWay(4 * PART), [bytes(3 * PART) for _ in range(2)]
    under_way.admit("a", bytes(5 * PART))
    with under_way.hold("a", bodies[0]):
        with pytest.raises(Refused, match=r"which is the limit of this service"):
            under_way.admit("b", bodies[1])
        under_way.admit("b", bodies[0])
    under_way.admit("b", bodies[1])
