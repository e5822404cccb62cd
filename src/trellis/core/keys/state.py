"""The state of an API key, which follows from its times."""

from trellis.store.keys import Key


def key_state(key: Key, now: str) -> str:
    """Return whether a key is active, paused, expired or revoked. Resuming does not help an expired one."""
    if key.revoked_at:
        return "revoked"
    if key.expires_at and key.expires_at <= now:
        return "expired"
    return "paused" if key.paused_at else "active"
