"""The responses kept for idempotency keys, and how long they stay."""

from trellis.store import idempotency
from trellis.store.engine.store import Store


def test_a_kept_answer_is_found_by_key_and_token_and_replaced_by_a_newer_one(store: Store) -> None:
    store.write(lambda tx: idempotency.save_response(tx, 7, "t", "f-1", {"id": 1, "name": None}, "2026-01")).result(30)
    store.write(lambda tx: idempotency.save_response(tx, 8, "t", "f-2", None, "2026-02")).result(30)
    with store.reading() as tx:
        assert idempotency.find_response(tx, 7, "t") == ("f-1", {"id": 1, "name": None}, "2026-01")
        assert idempotency.find_response(tx, 7, "u") is None
        assert idempotency.find_response(tx, 9, "t") is None
    store.write(lambda tx: idempotency.save_response(tx, 7, "t", "f-3", {"id": 2}, "2026-03")).result(30)
    with store.reading() as tx:
        assert idempotency.find_response(tx, 7, "t") == ("f-3", {"id": 2}, "2026-03")


def test_old_responses_are_purged_and_those_of_a_clock_that_was_ahead_a_day_after_it_is_put_right(store: Store) -> None:
    store.write(lambda tx: idempotency.save_response(tx, 7, "2026-01-29", "f", None, "2026-01-29")).result(30)
    store.write(lambda tx: idempotency.save_response(tx, 7, "2026-01-30", "f", None, "2026-01-30")).result(30)
    store.write(lambda tx: idempotency.save_response(tx, 7, "ahead", "f", None, "2026-02-28")).result(30)
    assert store.write(lambda tx: idempotency.purge(tx, "2026-01-30", "2026-01-31", "2026-02-01")).result(30) == 1
    with store.reading() as tx:
        assert idempotency.find_response(tx, 7, "2026-01-29") is None
        assert idempotency.find_response(tx, 7, "2026-01-30") is not None
        assert idempotency.find_response(tx, 7, "ahead") == ("f", None, "2026-01-31")
