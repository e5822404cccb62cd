"""How many requests there were, by hour and by key, as the log is written."""

import random
from functools import partial

from trellis.settings import Settings
from trellis.store.engine.store import Store
from trellis.store.requests import Request, count_by_hour, count_uses, log, read_quarters


def request(at: str, status: int) -> Request:
    return Request(at, "GET", "/api/x", None, 1, "127.0.0.1", status, 1, "r", None)


def test_requests_are_counted_by_hour_and_class_of_status(settings: Settings) -> None:
    store = Store(settings)
    asked = [("08:59:59.999", 200), ("09:00:00.000", 200), ("09:30:00.000", 204), ("09:59:59.999", 404), ("10:00:00.000", 500)]
    for batch in (asked, asked[1:2], []):
        written = [request(f"2026-01-31T{at}Z", status) for at, status in batch]
        store.write(partial(log.append, batch=written)).result(60)
    with store.reading() as tx:
        assert count_by_hour(tx, "2026-01-31T09:00:00.000Z") == {
            ("2026-01-31T09", 2): 3,
            ("2026-01-31T09", 4): 1,
            ("2026-01-31T10", 5): 1,
        }
    store.close()


def test_requests_are_counted_alike_however_many_are_written_at_a_time(settings: Settings) -> None:
    """They come in the order in which they are completed, which is not that of their times."""
    store, dice = Store(settings), random.Random(9)  # noqa: S311  # no secret
    times = [f"2026-01-31T{hour:02}:{dice.randrange(60):02}:{dice.randrange(60):02}.000Z" for hour in (8, 9, 10) for _ in range(40)]
    dice.shuffle(times)
    operations = ("forums.list", "forums.get", None)
    asked = [
        request(at, dice.choice((200, 204, 403, 404)))._replace(
            key_id=dice.choice((1, 2, None)), operation=dice.choice(operations), address=dice.choice("abc")
        )
        for at in times
    ]
    asked[7] = asked[7]._replace(key_id=1, is_example=True)
    apart = [one._replace(key_id=one.key_id and one.key_id + 10) for one in asked]  # the same of other keys
    store.write(partial(log.append, batch=asked)).result(60)
    for one in apart:
        store.write(partial(log.append, batch=[one])).result(60)
    counted = [one for one in asked if one.key_id is not None and not one.is_example]
    with store.reading() as tx:
        for key in (1, 2):
            assert count_uses(tx, key) == count_uses(tx, key + 10)
            ours, theirs = ({row[1:] for row in read_quarters(tx, [one], "2026")} for one in (key, key + 10))
            assert ours == theirs
            assert sum(times for _, _, times in ours) == sum(one.key_id == key for one in counted)
            for use in count_uses(tx, key):
                mine = [one for one in counted if (one.key_id, one.operation) == (key, use.operation) and one.status != 403]
                assert (use.times, use.last_at) == (len(mine), max(one.at for one in mine))
        assert sum(count_by_hour(tx, "2026").values()) == 2 * len(counted)
    store.close()
