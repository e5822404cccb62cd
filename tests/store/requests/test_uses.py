"""How many requests there were, by hour, as the log is written."""

from functools import partial

from trellis.settings import Settings
from trellis.store.engine.store import Store
from trellis.store.requests import Request, count_by_hour, log


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
