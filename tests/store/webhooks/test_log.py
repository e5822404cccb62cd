"""The search of deliveries: nothing left out, nothing twice, whatever was written in which order, on both engines."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.store import log_search
from trellis.store.webhooks import Delivery, log, outbox

_BEGAN: Final = datetime(2026, 1, 31, 9, 0, tzinfo=UTC)
_STATES: Final = ("waiting", "delivered", "failed")
_TYPES: Final = ("forum.created", "blog.deleted")


def _at(seconds: float) -> str:
    return format_timestamp(_BEGAN + timedelta(seconds=seconds))


@pytest.fixture
def written(gate: Gate, run: Any) -> list[Delivery]:
    """75 deliveries of three webhooks, one of which is deleted, over an hour, written up to a minute after they were made."""
    chance = random.Random(7)  # noqa: S311  # the same each time
    for _ in range(3):
        run("webhooks.create", url="https://hooks.example/", events=["*"])
    made = [
        Delivery(
            id=0,
            webhook_id=chance.randint(1, 3),
            seq=number // 3,
            message=f"msg_{number}",
            type=chance.choice(_TYPES),
            state=chance.choice(_STATES),
            due_at=None,
            created_at=_at(48 * number - chance.randint(0, 60)),
        )
        for number in range(75)
    ]

    def write(tx: Any) -> None:
        for one in made:
            one.id = outbox.insert(tx, one)

    gate.store.write(write).result(30)
    run("webhooks.delete", 3)
    return made


_FILTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"webhook_id": 2},
    {"state": "failed"},
    {"type": "blog.deleted", "webhook_id": 3, "state": "waiting"},
    {"seq": 20},
    {"seq": 21},
    {"seq": 22},
    {"seq": 20, "webhook_id": 1, "state": "delivered"},
    {"since": _at(1800)},
    {"until": _at(1800)},
    {"since": _at(600), "until": _at(2400), "webhook_id": 1},
    {"since": _at(600), "until": _at(660)},
    {"since": _at(99_999)},
    {"until": _at(-99_999)},
    {"webhook_id": 9},
)


@pytest.mark.parametrize("stretch", [7, 5_000])
def test_a_search_finds_everything_once(gate: Gate, written: list[Delivery], monkeypatch: pytest.MonkeyPatch, stretch: int) -> None:
    monkeypatch.setattr(log, "_STRETCH", stretch)
    for filters in _FILTERS:
        same = {name: value for name, value in filters.items() if name not in {"since", "until"}}
        wanted = [
            one.id
            for one in reversed(written)
            if all(getattr(one, name) == value for name, value in same.items())
            and filters.get("since", "") <= one.created_at < filters.get("until", "9")
        ]
        for limit, patience in ((1000, 60.0), (10, 60.0), (10, 0.0)):
            monkeypatch.setattr(log_search, "LONGEST", patience)
            found, before = list[int](), None
            with gate.store.reading() as tx:
                for _ in range(400):
                    result = log.search(tx, filters, limit, before)
                    found += [one.id for one in result.found]
                    before = result.next
                    if before is None:
                        break
            assert found == wanted, (filters, limit, patience)
