"""The keys with which the service signs data that it must recognise later: one for each purpose, random, and never shown.

The migrations create them, so reading a key never requires a write.
"""

from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Transaction
from trellis.store.tables import signing_keys

PLANS: Final = "plans"
FACTORS: Final = "factors"  # the second factors of administrators


def find_key(tx: Transaction, purpose: str) -> bytes:
    """Return the key for a purpose."""
    found = tx.connection.execute(sa.select(signing_keys.c.key).where(signing_keys.c.purpose == purpose)).scalar_one()
    return bytes.fromhex(found)
