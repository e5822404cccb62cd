"""Passwords: their digests, which are slow on purpose, and the lanes in which passwords wait to be digested.

`hash_password` and `verify_password` take 15 to 50 ms of a core. They run in two threads of `Lanes`, before the writer, and each
key, person and address waits in a lane of its own. The writer itself digests only passwords that become known there, and compares
those whose stored digest has changed meanwhile.
"""

from trellis.core.passwords.breached import BreachedPasswords
from trellis.core.passwords.digests import (
    NODE,
    SIGN_IN,
    Digests,
    Plain,
    compare,
    find_digest,
    has_password,
    hash_password,
    is_outdated,
    list_passwords,
    verify_password,
)
from trellis.core.passwords.lanes import KEYS, PEOPLE, STRANGERS, Lanes, chain, check_number, refuse_proposed
