"""Who may call: a key is looked up by its SHA-256 and must have been granted the operation."""

from hashlib import sha256
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException
from sqlalchemy import select

from bench.peers.fastapi_peer.database import Reading
from bench.peers.fastapi_peer.models import Key, now


def may(operation: str) -> Any:
    """Return the dependency that lets in only keys that were granted the operation; it gives the key."""

    async def judge(session: Reading, authorization: Annotated[str | None, Header()] = None) -> Key:
        scheme, _, text = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not text:
            raise HTTPException(401, "NO_API_KEY", {"WWW-Authenticate": "Bearer"})
        digest = sha256(text.encode()).hexdigest()
        key = session.scalar(select(Key).where(Key.digest == digest))
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now()):
            raise HTTPException(401, "INVALID_API_KEY", {"WWW-Authenticate": "Bearer"})
        if operation not in key.grants:
            raise HTTPException(403, f"NO_PERMISSION: this key was not granted {operation}")
        return key

    return Depends(judge)
