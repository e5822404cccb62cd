"""Which refusals an operation may answer with over HTTP, and when: what the OpenAPI document and the reference tell."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from trellis.core.fields import Field, invalid_id
from trellis.core.operation import Access, Operation
from trellis.errors import REASONS, Fault, Refused, refuse_faults
from trellis.http.problems import STATUS

# When each refusal is given, for a reader. A test proves that none is left out.
WHEN: Final[Mapping[str, str]] = {
    "NO_API_KEY": "No key was sent.",
    "INVALID_API_KEY": "The key is unknown, malformed, expired or revoked. The answer does not say which.",
    "IP_ADDRESS_NOT_ALLOWED": "The key has a list of addresses, and the caller's is not on it.",
    "CANNOT_USE_KEY_AS_URL_PARAM": "The key was sent as `?key=`, and this service takes none from there.",
    "TOO_MANY_REQUESTS_WITH_BAD_KEY": "Too many bad keys came from the caller's address. Wait for `Retry-After` seconds.",
    "NO_PERMISSION": "The key was not granted this operation. `missingOperation` names it.",
    "NO_ENDPOINT": "The path is none of those listed here.",
    "BAD_METHOD": "The path is right and the method is not. `Allow` lists the methods.",
    "INVALID_ID": "No record has this id. Each operation has a code of its own.",
    "INVALID_TARGET": "`deleteChildrenOrMove` is not -1 and names no node that the children can move to.",
    "HAS_CHILDREN": "The node has children, and `deleteChildrenOrMove` does not say what becomes of them. `children` counts them.",
    "NO_TITLE": "There is no name, or an empty one.",
    "NO_REDIRECT_URL": "The type is `redirect`, and there is no `redirectUrl`.",
    "INVALID_TYPE": "The type is none of those listed.",
    "CANNOT_DELETE": "The record is built in.",
    "MALFORMED_REQUEST": "The body or the query string cannot be read: broken JSON, a name sent twice, bytes that are not UTF-8.",
    "UNSUPPORTED_MEDIA_TYPE": "The body is neither JSON nor a form.",
    "BODY_TOO_LARGE": "The body is larger than this service reads.",
    "INVALID_HEADER": "`Idempotency-Key` or `X-Audit-Log-Reason` is too long, or holds characters that it may not.",
    "UNKNOWN_PARAMETER": "A parameter is not known here. `detail` names the nearest one that is.",
    "INVALID_VALUE": "A value is of the wrong type, or outside what is allowed. `errors` lists every field at fault.",
    "INVALID_PARENT": "`parentId` names no node, the node itself, one below it, or one that takes no children.",
    "INVALID_POSITION": "`before` or `after` names no child of the parent, or more than one place was asked for.",
    "INVALID_GROUP": "A permission names a group that does not exist.",
    "MISSING_VALUE": "A field that is needed was not sent.",
    "UNKNOWN_OPERATION": "A grant names no operation. Nobody grants over REST: only the panel and the terminal answer this.",
    "PRECONDITION_FAILED": "`If-Match` was sent, and the record has changed since.",
    "IDEMPOTENCY_KEY_REUSED": "The same `Idempotency-Key` came with another request within 24 hours.",
    "IDEMPOTENCY_KEY_IN_USE": "The first request with this `Idempotency-Key` is still running.",
    "RATE_LIMITED": "The key has used up its requests of this minute. `Retry-After` says how long to wait.",
    "KEY_REVOKED": "A revoked key cannot be changed. Only the panel and the terminal answer this.",
    "LOGIN_TAKEN": "Another administrator has this login. Only the panel and the terminal answer this.",
    "LAST_ADMINISTRATOR": "Nobody else could sign in to the panel. Only the panel and the terminal answer this.",
    "LINK_SPENT": "The link to make the first administrator is used or too old. Only the panel answers this.",
    "NOT_RESTORABLE": "The event made something, is not about a node, or was undone already (`undoneBy` says by which event).",
    "CHANGED_SINCE": "The record was changed again since, or deleted. `differences` tells what would be lost.",
    "NO_LONGER_KEPT": "The events behind `after`, or the rows that undoing needs, were purged.",
    "PARENT_NEEDED": "The parent that it stood under is gone, or takes no children now. `parentId` says where it shall go.",
    "ADDRESS_NOT_ALLOWED": "A webhook's address is private, local or otherwise not on the open internet, or cannot be one.",
    "UNKNOWN_EVENT": "A webhook asks for an event that there is not. `detail` names the nearest one.",
    "TOO_MANY_WEBHOOKS": "There are 100 webhooks already: delete one that is not needed.",
    "WEBHOOK_OFF": "The webhook is switched off. Only the panel and the terminal answer this.",
    "BUSY": "The database did not take the request in time. Send it again after `Retry-After` seconds.",
    "INTERNAL_ERROR": "A mistake of ours. Tell the operator the `requestId`.",
}

_ALWAYS: Final = (
    *("NO_API_KEY", "INVALID_API_KEY", "IP_ADDRESS_NOT_ALLOWED", "CANNOT_USE_KEY_AS_URL_PARAM"),
    *(
        "TOO_MANY_REQUESTS_WITH_BAD_KEY",
        "RATE_LIMITED",
        "MALFORMED_REQUEST",
        "UNKNOWN_PARAMETER",
        "BUSY",
        "INTERNAL_ERROR",
    ),
)
_WRITES: Final = ("UNSUPPORTED_MEDIA_TYPE", "BODY_TOO_LARGE", "INVALID_HEADER")
_IDEMPOTENCY: Final = ("IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_IN_USE")
_IF_MATCH: Final = ("PRECONDITION_FAILED",)
# Those that are the same for every operation, down to the example.
SHARED: Final = frozenset((*_ALWAYS, *_WRITES, *_IDEMPOTENCY, *_IF_MATCH)) - {"UNKNOWN_PARAMETER"}


def refusals_of(operation: Operation) -> tuple[Refused, ...]:
    """Give every refusal that an operation may answer with over REST, by status and code, each as an example of itself."""
    messages = dict.fromkeys(_ALWAYS, "")
    if operation.access in {Access.GRANTED, Access.FORKED}:
        messages["NO_PERMISSION"] = ""
    if operation.writes:
        messages |= dict.fromkeys(_WRITES, "")
    if operation.verb is not None:
        messages |= dict.fromkeys(_IDEMPOTENCY if operation.verb.idempotency_key else (), "")
        messages |= dict.fromkeys(_IF_MATCH if operation.verb.if_match else (), "")
    messages |= dict.fromkeys((field.missing for field in operation.takes if field.required), "")
    tried = _tried(operation)
    messages |= {message: fault.code for message, fault in tried.items()}
    messages |= dict(operation.refusals)
    found = [_example(message, code, operation, tried) for message, code in messages.items()]
    return tuple(sorted(found, key=lambda refused: (STATUS[refused.message], refused.reason.code)))


# Values of every JSON type, of which each field's type refuses some: it then says under which message it does.
_PROBES: Final[tuple[Any, ...]] = ("?", "", "\0", -2, 10**30, 0.5, True, None, [[]], {"?": 1})


def _tried(operation: Operation) -> dict[str, Fault]:
    """Find out by trial under which messages an operation's fields refuse values; give the first fault of each."""
    found: dict[str, Fault] = {}
    for probe in _PROBES:
        for fault in _faults(operation, ((field, probe) for field in operation.takes)):
            found.setdefault(fault.message, fault)
    return found


def _faults(operation: Operation, values: Iterable[tuple[Field, Any]]) -> Iterator[Fault]:
    for field, value in values:
        yield from operation.form.read({field.name: value}).faults


# --- examples -----------------------------------------------------------------------------------------------------

_DETAILS: Final[Mapping[str, str]] = {
    "NO_API_KEY": "Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: KEY`).",
    "INVALID_API_KEY": "The key is not known, or no longer good. Check that it was copied whole and ask an administrator.",
    "IP_ADDRESS_NOT_ALLOWED": "This key may not be used from 198.51.100.7.",
    "CANNOT_USE_KEY_AS_URL_PARAM": "Addresses end up in logs and histories, so this service takes no key from them.",
    "TOO_MANY_REQUESTS_WITH_BAD_KEY": "Too many requests with a bad key came from 198.51.100.7. Wait 42 seconds.",
    "NO_ENDPOINT": "There is no '/nowhere' here.",
    "BAD_METHOD": "This path does not answer 'PUT'; it answers GET, HEAD, OPTIONS, POST.",
    "HAS_CHILDREN": "'News' has 2 children, 5 below it in all. Send deleteChildrenOrMove=-1 to delete them too.",
    "NO_REDIRECT_URL": "redirectUrl is needed when type is redirect: give an http or https address.",
    "CANNOT_DELETE": "Members is built in and cannot be deleted.",
    "MALFORMED_REQUEST": "The parameter 'dryRun' is sent more than once.",
    "UNSUPPORTED_MEDIA_TYPE": "The body is announced as 'text/plain'. Send Content-Type: application/json with a JSON object.",
    "BODY_TOO_LARGE": "The body is larger than 1,048,576 bytes, which is the most that is read here.",
    "INVALID_HEADER": "X-Audit-Log-Reason must be at most 500 characters without control characters.",
    "INVALID_POSITION": "after: there is no other node 999 at the top level. Give the id of one that stands there.",
    "INVALID_GROUP": "permissions.view names groups that do not exist: 999.",
    "PRECONDITION_FAILED": "The record has changed since you read it: its ETag is not in If-Match. Get it again, and decide anew.",
    "IDEMPOTENCY_KEY_REUSED": "This Idempotency-Key came with another request within the last 24 hours.",
    "IDEMPOTENCY_KEY_IN_USE": "A request with this Idempotency-Key is still running. Wait for its answer.",
    "RATE_LIMITED": "This key may send 6000 requests a minute, and has. Wait 42 seconds.",
    "NOT_RESTORABLE": "Event 12 was undone already, by event 15.",
    "CHANGED_SINCE": "The forum 7 was changed again since event 12 (event 14): name.",
    "NO_LONGER_KEPT": "What there was before event 12 is no longer kept: changes can be undone for 30 days.",
    "PARENT_NEEDED": "It cannot go back to where it was: there is no forum 3 now. Say with parentId where it shall go.",
    "ADDRESS_NOT_ALLOWED": "url leads to 10.0.0.5, which is not on the open internet.",
    "UNKNOWN_EVENT": "events: there is no event 'forum.create'. Did you mean forum.created?",
    "TOO_MANY_WEBHOOKS": "There are 100 webhooks already. Delete one that is not needed.",
    "BUSY": "Too much is waiting to be written. Try again in a moment.",
    "INTERNAL_ERROR": "The service made a mistake. Nothing of this request was kept as far as we know.",
}
_FIELDS: Final[Mapping[str, str]] = {
    "NO_REDIRECT_URL": "redirectUrl",
    "INVALID_POSITION": "after",
    "INVALID_GROUP": "permissions.view",
    "ADDRESS_NOT_ALLOWED": "url",
    "UNKNOWN_EVENT": "events",
}
_FACTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "HAS_CHILDREN": {"children": 2, "descendants": 5, "options": {"delete": -1, "move": "the id of another node"}},
    "NOT_RESTORABLE": {"undoneBy": 15},
    "CHANGED_SINCE": {"differences": [{"field": "name", "then": "News", "now": "Bulletin"}]},
    "PARENT_NEEDED": {"parentId": 3},
    "BAD_METHOD": {"allow": "GET, HEAD, OPTIONS, POST"},
    "TOO_MANY_REQUESTS_WITH_BAD_KEY": {"retryAfter": 42},
    "RATE_LIMITED": {"retryAfter": 42, "limit": 6000, "reset": 1769851860},
}


def _example(message: str, code: str, operation: Operation, tried: Mapping[str, Fault]) -> Refused:
    name = operation.name
    if message == "INVALID_ID":
        return invalid_id(operation.singular, 999, code)
    if message == "NO_PERMISSION":
        return Refused(message, f"The key 'Plugin' has not been granted {name}.", facts={"missingOperation": name})
    if message == "UNKNOWN_PARAMETER":
        misspelt = next((field.name for field in operation.takes if not field.read_only), "name") + "s"
        return refuse_faults(operation.form.read({misspelt: 1}).faults)
    if (fault := tried.get(message)) is not None:
        return refuse_faults((fault,))
    detail = _DETAILS.get(message, REASONS[message].title + ".")
    faults = (Fault(_FIELDS[message], message, detail, code),) if message in _FIELDS else ()
    return Refused(message, detail, code, faults, _FACTS.get(message, {}))
