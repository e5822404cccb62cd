"""The responses kept for idempotency keys."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import answers

_ANSWER = Statement(
    sa.select(answers.c.fingerprint, answers.c.answer, answers.c.at).where(
        answers.c.key_id == bindparam("key"), answers.c.token == bindparam("token")
    )
)


def answer_of(tx: Transaction, key: int, token: str) -> tuple[str, Any, str] | None:
    """Find the answer kept for a key's idempotency token: fingerprint of the request, answer, moment."""
    rows = tx.rows(_ANSWER, key=key, token=token)
    return (rows[0][0], tx.decoded(rows[0][1]), rows[0][2]) if rows else None


def keep_answer(tx: Transaction, key: int, token: str, fingerprint: str, answer: Any, at: str) -> None:
    """Keep an answer, in place of an older one."""
    tx.connection.execute(sa.delete(answers).where(answers.c.key_id == key, answers.c.token == token))
    tx.connection.execute(
        sa.insert(answers).values(key_id=key, token=token, fingerprint=fingerprint, answer=tx.encoded(answer), at=at)
    )


def purge(tx: Transaction, before: str) -> int:
    """Delete the responses kept since before a timestamp; give their number."""
    return tx.connection.execute(sa.delete(answers).where(answers.c.at < before)).rowcount
