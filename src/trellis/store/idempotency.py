"""The responses stored for idempotency keys."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import idempotent_responses

_c = idempotent_responses.c
_FIND = Statement(
    sa.select(_c.fingerprint, _c.response, _c.at).where(_c.key_id == bindparam("key"), _c.token == bindparam("token"))
)


def find_response(tx: Transaction, key: int, token: str) -> tuple[str, Any, str] | None:
    """Find the response to a key's idempotency token: fingerprint of the request, response, timestamp. None if there is none."""
    rows = tx.fetch(_FIND, key=key, token=token)
    return (rows[0][0], tx.decode(rows[0][1]), rows[0][2]) if rows else None


def save_response(tx: Transaction, key: int, token: str, fingerprint: str, response: Any, at: str) -> None:
    """Save the response for a key's idempotency token, replacing an older one."""
    tx.connection.execute(sa.delete(idempotent_responses).where(_c.key_id == key, _c.token == token))
    tx.connection.execute(
        sa.insert(idempotent_responses).values(
            key_id=key, token=token, fingerprint=fingerprint, response=tx.encode(response), at=at
        )
    )


def purge(tx: Transaction, before: str, now: str, ahead: str) -> int:
    """Delete the responses from before a timestamp, and return their number. Those from after `ahead` get the time `now`."""
    tx.connection.execute(sa.update(idempotent_responses).where(_c.at > ahead).values(at=now))
    return tx.connection.execute(sa.delete(idempotent_responses).where(_c.at < before)).rowcount
