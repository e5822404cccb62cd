"""The rows of attempts to sign in: there is an end to them, those of the least guesses go first, and known browsers stay."""

import pytest

from trellis.store.admins import Attempts, attempts
from trellis.store.engine import Transaction
from trellis.store.engine.store import Store

BROWSERS = {"browser/a", "browser/b", "browser/c"}


def _save(store: Store, subject: str, minute: int, failures: int = 1) -> None:
    at = f"2026-01-31T09:{minute:02d}:00.000Z"
    store.write(lambda tx: attempts.save_attempts(tx, Attempts(subject, failures, at, at))).result(30)


def _trim(store: Store) -> set[str]:
    def trim(tx: Transaction) -> set[str]:
        attempts.trim_attempts(tx, keep=attempts.BROWSER)
        subjects = (*BROWSERS, *(f"account/{number}" for number in range(30)))
        return set(attempts.find_attempts(tx, subjects))

    return store.write(trim).result(30)


def test_beyond_the_bound_the_oldest_go_and_known_browsers_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempts._MOST_SUBJECTS == 20_000
    monkeypatch.setattr(attempts, "_MOST_SUBJECTS", 10)
    for browser in BROWSERS:
        _save(store, browser, 0)  # older than all others
    for number in range(10):
        _save(store, f"account/{number}", 59 - number)  # the last is the oldest
    assert _trim(store) == BROWSERS | {f"account/{number}" for number in range(10)}, "as many as may be, besides the browsers"
    _save(store, "account/10", 1)
    assert _trim(store) == BROWSERS | {f"account/{number}" for number in range(9)}, "a tenth goes at once"


def test_made_up_logins_make_nobody_forget_who_has_guessed_often(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MOST_SUBJECTS", 10)
    _save(store, "account/0", 0, failures=6)  # older than all others
    for number in range(1, 30):
        _save(store, f"account/{number}", number)
        assert "account/0" in _trim(store)


def test_known_browsers_take_no_room_from_the_counters(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "_MOST_SUBJECTS", 2)
    for subject in (*BROWSERS, "account/0", "account/1"):
        _save(store, subject, 0)
    assert _trim(store) == {*BROWSERS, "account/0", "account/1"}
