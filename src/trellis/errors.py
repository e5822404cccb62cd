"""The closed set of refusals: every way in which Trellis says no, with its code and its message, and no HTTP status."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Reason:
    """One kind of refusal: `message` is its stable name, `code` its stable number, `title` its sentence for people."""

    message: str
    code: str
    title: str


def _closed_set(*rows: tuple[str, str, str]) -> Mapping[str, Reason]:
    return MappingProxyType({message: Reason(message, code, title) for code, message, title in rows})


REASONS: Final = _closed_set(
    # Codes 2S290 … 1S359 and the kinds' own are those of the contract; 1T… are Trellis's.
    ("2S290/6", "NO_API_KEY", "An API key is needed"),
    ("3S290/7", "INVALID_API_KEY", "The API key is not valid"),
    ("2S290/8", "IP_ADDRESS_NOT_ALLOWED", "This key may not be used from this address"),
    ("2S290/B", "CANNOT_USE_KEY_AS_URL_PARAM", "The key may not be sent in the URL"),
    ("1S290/D", "TOO_MANY_REQUESTS_WITH_BAD_KEY", "Too many requests with a bad key"),
    ("2S291/3", "NO_PERMISSION", "The key lacks this operation"),
    ("2S291/1", "NO_ENDPOINT", "There is no such endpoint"),
    ("3S291/2", "BAD_METHOD", "This path does not answer that method"),
    ("1S359/1", "INVALID_ID", "There is no such record"),
    ("1S359/2", "INVALID_TARGET", "The children cannot go there"),
    ("1S359/3", "HAS_CHILDREN", "The node has children"),
    ("1F363/2", "NO_TITLE", "A name is needed"),
    ("1F363/3", "NO_REDIRECT_URL", "A redirect needs an address to lead to"),
    ("1F363/4", "INVALID_TYPE", "There is no such type"),
    ("2C358/3", "CANNOT_DELETE", "This record is built in"),
    ("1T100/1", "MALFORMED_REQUEST", "The request could not be understood"),
    ("1T100/2", "UNSUPPORTED_MEDIA_TYPE", "The body is of a type that is not read here"),
    ("1T100/3", "BODY_TOO_LARGE", "The body is too large"),
    ("1T100/4", "INVALID_HEADER", "A header has a value that is not allowed"),
    ("1T101/1", "UNKNOWN_PARAMETER", "There is no such parameter"),
    ("1T101/2", "INVALID_VALUE", "A value is not allowed"),
    ("1T101/3", "INVALID_PARENT", "The node cannot stand there"),
    ("1T101/4", "INVALID_POSITION", "There is no such place among the siblings"),
    ("1T101/5", "INVALID_GROUP", "There is no such group"),
    ("1T101/6", "MISSING_VALUE", "A value is needed"),
    ("1T101/7", "UNKNOWN_OPERATION", "There is no such operation"),
    ("1T102/1", "PRECONDITION_FAILED", "The record is not the one you read"),
    ("1T102/2", "IDEMPOTENCY_KEY_REUSED", "The idempotency key belongs to another request"),
    ("1T102/3", "IDEMPOTENCY_KEY_IN_USE", "The first request with this idempotency key is still running"),
    ("1T103/1", "RATE_LIMITED", "The key has used up its requests for now"),
    ("1T105/1", "KEY_REVOKED", "The key was revoked"),
    ("1T108/1", "LOGIN_TAKEN", "Another administrator has this login"),
    ("1T108/2", "LAST_ADMINISTRATOR", "This is the only administrator who can sign in"),
    ("1T108/3", "LINK_SPENT", "The link cannot be used any more"),
    ("1T106/1", "NOT_RESTORABLE", "This event cannot be undone"),
    ("1T106/2", "CHANGED_SINCE", "The record was changed again since"),
    ("1T106/3", "NO_LONGER_KEPT", "What this asks for is no longer kept"),
    ("1T106/4", "PARENT_NEEDED", "The old parent cannot take it back"),
    ("1T107/1", "ADDRESS_NOT_ALLOWED", "Webhooks may not go to that address"),
    ("1T107/2", "UNKNOWN_EVENT", "There is no such event"),
    ("1T107/3", "TOO_MANY_WEBHOOKS", "There are as many webhooks as there may be"),
    ("1T107/9", "WEBHOOK_OFF", "The webhook is switched off"),
    ("4T104/1", "BUSY", "The database is busy or cannot be reached"),
    ("4T104/2", "INTERNAL_ERROR", "Something went wrong on our side"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field: its name as documented, the message of a reason, and a sentence that says what to do."""

    field: str
    message: str
    detail: str
    code: str = ""

    def coded(self) -> str:
        """Give the fault's own code, or its reason's."""
        return self.code or REASONS[self.message].code


@dataclass(eq=False)  # not frozen: Python writes a traceback into what it raises
class Refused(Exception):
    """A refusal. Nothing was changed.

    `message` is a key of REASONS, `detail` says what was wrong, where, and what to do; `code` overrides the reason's code
    where a kind has its own; `faults` lists every field at fault; `facts` are further members for a program to read.
    """

    message: str
    detail: str
    code: str = ""
    faults: tuple[Fault, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a message that is not in the closed set: a mistake of ours, found by the first test that meets it."""
        REASONS[self.message]

    @property
    def reason(self) -> Reason:
        """The reason, with the code that holds here."""
        reason = REASONS[self.message]
        return Reason(reason.message, self.code or reason.code, reason.title)

    def __str__(self) -> str:
        return f"{self.message}: {self.detail}"


def refuse_faults(faults: tuple[Fault, ...]) -> Refused:
    """Make one refusal of all faults of a request; the first one gives it its code.

    An unknown parameter comes last, so that the code names what was meant rather than what was misspelt.
    """
    first, *rest = faults = tuple(sorted(faults, key=lambda fault: fault.message == "UNKNOWN_PARAMETER"))
    detail = first.detail if not rest else f"{len(faults)} fields are at fault: " + " ".join(f.detail for f in faults)
    return Refused(first.message, detail, code=first.coded(), faults=faults)
