"""A device that keeps one passkey, in software: what a browser would answer for it, and what a thief might."""

import hashlib
import json
import secrets
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from trellis.core.factors.challenges import encode

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40  # the flags of authenticator data


class PasskeyDevice:
    """A device with one passkey for one address. `counter` goes up with each use; `flags` are what it says of its owner."""

    def __init__(self, origin: str, host: str) -> None:
        self.origin = origin
        self.host = host
        self.flags = PRESENT | VERIFIED
        self.counter = 0
        self.id = secrets.token_bytes(32)
        self._key = ec.generate_private_key(ec.SECP256R1())

    def create(self, options: str) -> str:
        """Answer what a browser is asked to make a passkey."""
        numbers = self._key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        public = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        credential = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public
        data = self._data(ATTESTED) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer({"clientDataJSON": self._client("webauthn.create", options), "attestationObject": attestation})

    def use(self, options: str) -> str:
        """Answer what a browser is asked to use it."""
        self.counter += 1
        client, data = self._client("webauthn.get", options), self._data()
        signature = self._key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return self._answer({"clientDataJSON": client, "authenticatorData": data, "signature": signature})

    def _client(self, kind: str, options: str) -> bytes:
        return json.dumps({"type": kind, "challenge": json.loads(options)["challenge"], "origin": self.origin}).encode()

    def _data(self, more: int = 0) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + bytes([self.flags | more]) + self.counter.to_bytes(4, "big")

    def _answer(self, response: dict[str, Any]) -> str:
        texts = {name: encode(value) for name, value in response.items()}
        return json.dumps({"id": encode(self.id), "rawId": encode(self.id), "type": "public-key", "response": texts})
