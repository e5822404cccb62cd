"""The rows of sign-in attempts: counters that slow down guessing, and failures to report in an event. Both are bounded."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Final, NamedTuple

import sqlalchemy as sa

from trellis.store.engine import Transaction, upsert
from trellis.store.tables import failed_sign_ins, sign_in_attempts

BROWSER: Final = "browser/"  # prefix of the subjects of known browsers
_MOST_SUBJECTS: Final = 20_000
_MOST_BROWSERS: Final = 100  # of one administrator
_OTHERS: Final = "other addresses"
_MOST_FAILED: Final = 20  # rows of a minute, not counting the row for all other addresses


@dataclass(slots=True)
class Attempts:
    """Failed attempts of one subject (an account, an address or a known browser), and until when it has to wait."""

    subject: str
    failures: int
    at: str
    wait_until: str


def find_attempts(tx: Transaction, subjects: tuple[str, ...]) -> dict[str, Attempts]:
    """Read the failed attempts of some subjects. Subjects without a row are left out."""
    columns = (sign_in_attempts.c[f.name] for f in fields(Attempts))
    rows = tx.connection.execute(sa.select(*columns).where(sign_in_attempts.c.subject.in_(subjects)))
    return {row[0]: Attempts(*row) for row in rows}


_SAVE: Final = upsert(sign_in_attempts, "failures = excluded.failures, at = excluded.at, wait_until = excluded.wait_until")


def save_attempts(tx: Transaction, counted: Attempts) -> None:
    """Write the failed attempts of a subject, replacing its row."""
    tx.execute(_SAVE, **asdict(counted))


def purge_attempts(tx: Transaction, failures_before: str, browsers_before: str, ahead: str) -> int:
    """Delete failed attempts and known browsers from before these timestamps or after `ahead`; return the number of rows."""
    c = sign_in_attempts.c
    is_browser = c.subject.startswith(BROWSER)
    old = sa.or_(c.at < browsers_before, sa.and_(c.at < failures_before, ~is_browser), c.at > ahead)
    return tx.connection.execute(sa.delete(sign_in_attempts).where(old)).rowcount


def trim_attempts(tx: Transaction, keep: str) -> None:
    """Delete subjects if there are more than 20,000 without those that begin with `keep`, which stay.

    Subjects with the fewest failures are deleted first, the oldest of them before newer ones, so that nobody can push the counter
    of an attacked account out by trying many made-up logins.
    """
    subjects = sign_in_attempts
    is_other = ~subjects.c.subject.startswith(keep)
    if (count := tx.count(subjects, is_other)) > _MOST_SUBJECTS:
        others = sa.select(subjects.c.subject).where(is_other).order_by(subjects.c.failures, subjects.c.at)
        oldest = others.limit(count - _MOST_SUBJECTS * 9 // 10)
        tx.connection.execute(sa.delete(subjects).where(subjects.c.subject.in_(oldest)))


def trim_browsers(tx: Transaction, prefix: str) -> None:
    """Delete the browsers that have not been used for the longest time if there are more than 100 of a prefix, an administrator's.

    Each has a limit of their own, so that nobody who signs in again and again makes the service forget the browsers of others.
    """
    c = sign_in_attempts.c
    newest = sa.select(c.subject).where(c.subject.startswith(prefix)).order_by(c.at.desc(), c.subject).limit(_MOST_BROWSERS)
    tx.connection.execute(sa.delete(sign_in_attempts).where(c.subject.startswith(prefix), c.subject.not_in(newest)))


# --- failures, counted until an event reports them ----------------------------------------------------------------

_f = failed_sign_ins.c


class FailedSignIns(NamedTuple):
    """How many sign-ins from an address failed in a minute for an administrator's account (0 for a login that does not exist)."""

    minute: str
    address: str
    admin_id: int
    attempts: int


_COUNT_FAILED: Final = upsert(failed_sign_ins, "attempts = failed_sign_ins.attempts + excluded.attempts")


def count_failed(tx: Transaction, minute: str, address: str, admin: int) -> None:
    """Count a failed sign-in. Once a minute has 20 rows, all other addresses and accounts share one more row."""
    is_in_minute = _f.minute == minute
    is_new = not tx.count(failed_sign_ins, is_in_minute, _f.address == address, _f.admin_id == admin)
    if is_new and tx.count(failed_sign_ins, is_in_minute) >= _MOST_FAILED:
        address, admin = _OTHERS, 0
    tx.execute(_COUNT_FAILED, minute=minute, address=address, admin_id=admin, attempts=1)


def find_failed(tx: Transaction, before: str, ahead: str) -> Iterator[FailedSignIns]:
    """Read up to 100 rows of the minutes before `before` or after `ahead`, oldest first."""
    columns = (_f[name] for name in FailedSignIns._fields)
    rows = tx.connection.execute(
        sa.select(*columns)
        .where(sa.or_(_f.minute < before, _f.minute > ahead))
        .order_by(_f.minute, _f.address, _f.admin_id)
        .limit(100)
    )
    return (FailedSignIns(*row) for row in rows)


def take_failed(tx: Transaction, minute: str, address: str, admin: int) -> int:
    """Delete a row, and return the number of attempts that it counted; 0 if the row does not exist."""
    same = (_f.minute == minute, _f.address == address, _f.admin_id == admin)
    row = tx.connection.execute(sa.delete(failed_sign_ins).where(*same).returning(_f.attempts)).first()
    return int(row[0]) if row else 0
