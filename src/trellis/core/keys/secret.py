"""The form of an API key: `trl_` + 8 public characters + `_` + 32 secret ones + a 6-character CRC-32 checksum."""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from typing import Final

ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_FORM: Final = re.compile(r"trl_([0-9A-Za-z]{8})_([0-9A-Za-z]{32})([0-9A-Za-z]{6})")
_MARK: Final = re.compile(r"trl_([0-9A-Za-z]{8})_[0-9A-Za-z]{16,}")
_PUBLIC: Final = re.compile(r"trl_[0-9A-Za-z]{8}(?![0-9A-Za-z])")
_ENCODED: Final = re.compile(r"%(?:25)*([0-9A-Fa-f]{2})")  # a percent sign may be encoded itself, any number of times
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ROUNDS: Final = 8  # of decoding
_HIDDEN_WHOLE: Final = f"trl_{'0' * 8}_{'0' * 16}"
_LONGEST_REASON: Final = 500  # characters
_LONGEST_PATH: Final = 512  # characters
_DECODED: Final = 8  # characters of a text that may be decoded for each that is shown


@dataclass(frozen=True, slots=True)
class Secret:
    """The two halves of a key."""

    public: str
    secret: str

    def __str__(self) -> str:
        start = f"trl_{self.public}_{self.secret}"
        return start + _checksum(start)

    def __repr__(self) -> str:
        return f"Secret(trl_{self.public}_…)"

    @property
    def digest(self) -> str:
        """The SHA-256 of the secret half in hex, which is what is stored. 190 random bits need no slow hash."""
        return hashlib.sha256(self.secret.encode()).hexdigest()

    def matches(self, digest: str) -> bool:
        """Compare with a stored digest in constant time."""
        return hmac.compare_digest(self.digest, digest)


def new_secret(public: str | None = None) -> Secret:
    """Generate a key, or a new secret for an existing public part."""
    return Secret(public or _random(8), _random(32))


def parse_secret(text: str) -> Secret | None:
    """Parse a key; None if its form or its checksum is wrong."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[:-6]) != found[3]:
        return None
    return Secret(found[1], found[2])


def has_key_form(text: str) -> bool:
    """Return whether a text has the form of a key, valid or not."""
    return _FORM.fullmatch(text) is not None


def find_public_part(text: str) -> str:
    """Return the public part of the first key in a text: `trl_` and 8 characters; "" if there is none."""
    found = _PUBLIC.search(text)
    return found[0] if found else ""


def redact_keys(text: str) -> str:
    """Replace the secret half of everything that looks like a key, so that it never reaches a log.

    If percent-encoding may hide a key or a part of one, the text is returned decoded.
    """
    if "%" in text and _MARK.search(decoded := _decode(text)):
        text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", decoded)
    return _MARK.sub(r"trl_\1_[hidden]", text) if "trl_" in text else text


def redact_path(path: str) -> str:
    """Return a path as logs show it: with keys redacted, and cut to 512 characters."""
    return redact_beginning(path, _LONGEST_PATH)


def redact_beginning(text: str, longest: int) -> str:
    """Return the beginning of a text with keys redacted, including one that is cut off at the end."""
    return redact_keys(text[: _DECODED * longest])[:longest]


def tidy_reason(typed: str) -> str:
    """Return the reason for an action as events store it: one line, with keys redacted and without invisible characters."""
    return redact_keys(to_one_line(typed))[:_LONGEST_REASON]


def to_one_line(typed: str) -> str:
    """Return a text as one line without invisible characters."""
    return "".join(one for one in " ".join(typed.split()) if one.isprintable())


def _decode(text: str) -> str:
    """Remove percent-encoding until none is left. A text that is encoded too many times is replaced by one that gets redacted."""
    for _ in range(_ROUNDS):
        decoded = _ENCODED.sub(lambda found: chr(int(found[1], 16)), text)
        if decoded == text:
            return text
        text = decoded
    return _HIDDEN_WHOLE


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


_PAIRS: Final = tuple(first + second for first in ALPHABET for second in ALPHABET)


def _checksum(text: str) -> str:
    """Return the CRC-32 of a text in base 62, six digits."""
    rest, low = divmod(zlib.crc32(text.encode()), 3844)
    high, middle = divmod(rest, 3844)
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]
