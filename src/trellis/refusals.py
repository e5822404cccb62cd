"""The table of refusals: every way in which Trellis says no, one row for each, with all that is said about it anywhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final


class Scope(Enum):
    """Which operations may answer with a refusal over REST."""

    EVERY = "every operation"
    GRANTED = "every operation that needs a grant"
    WRITES = "every write"
    CONDITIONAL = "every write that takes If-Match"
    IDEMPOTENT = "every write that takes an Idempotency-Key"
    DECLARED = "the operations that declare it, and those with a field whose type refuses values with it"
    NONE = "no operation: it is answered before one is found, or only by the panel and the terminal"


@dataclass(frozen=True, slots=True)
class Member:
    """A member that a refusal adds to its problem document.

    `schema` is its JSON Schema, `doc` says what it holds. `example` is in the example of the problem document, unless it is None:
    some members are there only in some cases.
    """

    name: str
    schema: Mapping[str, Any]
    doc: str
    example: Any = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row of the table.

    `code` and `message` are stable and belong to nothing else; `status` is the HTTP status, `title` a few words for people, and
    `when` the sentence of the reference. `at_fault` is the field at fault in the example of a refusal that lists such fields in
    `errors`, and empty for one that lists none. `members` and `headers` are what it adds to the problem document and
    to the answer; `{name}` in a header's value stands for a member. `example` is an example of its detail, in which
    `{operation}` and `{singular}` stand for the operation's name and for what its record is called; it is empty where the title
    says enough, or where the fields of the operation provide one. A refusal that `yields` does not give its code to a request
    with several faults.
    """

    code: str
    message: str
    status: int
    title: str
    scope: Scope
    when: str
    example: str = ""
    at_fault: str = ""
    members: tuple[Member, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    yields: bool = False


_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "integer", "minimum": 1}
_RETRY_AFTER: Final = Member("retryAfter", _COUNT, "how many seconds to wait.", 42)

# Codes 2S290 … 1S359 and the kinds' own are those of the contract; 1T… and 4T… are Trellis's.
# Each row stands as a paragraph, which a formatter would pull apart into one line for each cell.
# fmt: off
_ROWS: Final = (
    # --- the key --------------------------------------------------------------------------------------------------
    Refusal("2S290/6", "NO_API_KEY", 401, "An API key is needed", Scope.EVERY,
            when="No key was sent.",
            example="Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: KEY`).",
            headers={"WWW-Authenticate": 'Bearer realm="trellis"'}),
    Refusal("3S290/7", "INVALID_API_KEY", 401, "The API key is not valid", Scope.EVERY,
            when="The key is unknown, malformed, expired or revoked. The answer does not say which.",
            example="The key is not known, or no longer good. Check that it was copied whole and ask an administrator.",
            headers={"WWW-Authenticate": 'Bearer realm="trellis"'}),
    Refusal("2S290/8", "IP_ADDRESS_NOT_ALLOWED", 403, "This key may not be used from this address", Scope.EVERY,
            when="The key has a list of addresses, and the caller's is not on it.",
            example="This key may not be used from 198.51.100.7."),
    Refusal("2S290/B", "CANNOT_USE_KEY_AS_URL_PARAM", 403, "The key may not be sent in the URL", Scope.EVERY,
            when="The key was sent as `?key=`, and this service takes none from there.",
            example="Addresses end up in logs and histories, so this service takes no key from them."),
    Refusal("1S290/D", "TOO_MANY_REQUESTS_WITH_BAD_KEY", 429, "Too many requests with a bad key", Scope.EVERY,
            when="Too many bad keys came from the caller's address. Wait for `Retry-After` seconds.",
            example="Too many requests with a bad key came from 198.51.100.7. Wait 42 seconds.",
            members=(_RETRY_AFTER,),
            headers={"Retry-After": "{retryAfter}"}),
    Refusal("2S291/3", "NO_PERMISSION", 403, "The key lacks this operation", Scope.GRANTED,
            when="The key was not granted this operation. `missingOperation` names it.",
            example="The key 'Plugin' has not been granted {operation}.",
            members=(
                Member("missingOperation", {"type": "string"}, "the operation that the key was not granted.", "{operation}"),
            )),
    # --- the address ----------------------------------------------------------------------------------------------
    Refusal("2S291/1", "NO_ENDPOINT", 404, "There is no such endpoint", Scope.NONE,
            when="The path is none of those listed here.",
            example="There is no '/nowhere' here."),
    Refusal("3S291/2", "BAD_METHOD", 405, "This path does not answer that method", Scope.NONE,
            when="The path is right and the method is not. `Allow` lists the methods.",
            example="This path does not answer 'PUT'; it answers GET, HEAD, OPTIONS, POST.",
            members=(Member("allow", {"type": "string"}, "the methods that the path answers.", "GET, HEAD, OPTIONS, POST"),),
            headers={"Allow": "{allow}"}),
    Refusal("1S359/1", "INVALID_ID", 404, "There is no such record", Scope.DECLARED,
            when="No record has this id. Each operation has a code of its own.",
            example="There is no {singular} with the id 999."),
    # --- nodes ----------------------------------------------------------------------------------------------------
    Refusal("1S359/2", "INVALID_TARGET", 400, "The children cannot go there", Scope.DECLARED,
            when="`deleteChildrenOrMove` is not -1 and names no node that the children can move to.",
            at_fault="deleteChildrenOrMove"),
    Refusal("1S359/3", "HAS_CHILDREN", 409, "The node has children", Scope.DECLARED,
            when="The node has children, and `deleteChildrenOrMove` does not say what becomes of them. `children` counts them.",
            example="'News' has 2 children, 5 below it in all. Send deleteChildrenOrMove=-1 to delete them too.",
            members=(
                Member("children", _NUMBER, "how many children there are.", 2),
                Member("descendants", _NUMBER, "how many nodes there are below it in all.", 5),
                Member("options",
                       {"type": "object", "required": ["delete", "move"],
                        "properties": {"delete": {"type": "integer", "maximum": -1}, "move": {"type": "string"}}},
                       "what `deleteChildrenOrMove` may be.", {"delete": -1, "move": "the id of another node"}),
            )),
    Refusal("1F363/2", "NO_TITLE", 400, "A name is needed", Scope.DECLARED,
            when="There is no name, or an empty one.",
            at_fault="name"),
    Refusal("1F363/3", "NO_REDIRECT_URL", 400, "A redirect needs an address to lead to", Scope.DECLARED,
            when="The type is `redirect`, and there is no `redirectUrl`.",
            example="redirectUrl is needed when type is redirect: give an http or https address.",
            at_fault="redirectUrl"),
    Refusal("1F363/4", "INVALID_TYPE", 400, "There is no such type", Scope.DECLARED,
            when="The type is none of those listed.",
            at_fault="type"),
    Refusal("2C358/3", "CANNOT_DELETE", 403, "This record is built in", Scope.DECLARED,
            when="The record is built in.",
            example="Members is built in and cannot be deleted."),
    # --- the body, the headers and the fields ---------------------------------------------------------------------
    Refusal("1T100/1", "MALFORMED_REQUEST", 400, "The request could not be understood", Scope.EVERY,
            when="The body or the query string cannot be read: broken JSON, a name sent twice, bytes that are not UTF-8.",
            example="The parameter 'dryRun' is sent more than once."),
    Refusal("1T100/2", "UNSUPPORTED_MEDIA_TYPE", 415, "The body is of a type that is not read here", Scope.WRITES,
            when="The body is neither JSON nor a form.",
            example="The body is announced as 'text/plain'. Send Content-Type: application/json with a JSON object."),
    Refusal("1T100/3", "BODY_TOO_LARGE", 413, "The body is too large", Scope.WRITES,
            when="The body is larger than this service reads.",
            example="The body is larger than 1,048,576 bytes, which is the most that is read here."),
    Refusal("1T100/4", "INVALID_HEADER", 400, "A header has a value that is not allowed", Scope.WRITES,
            when="`Idempotency-Key` or `X-Audit-Log-Reason` is too long, or holds characters that it may not.",
            example="X-Audit-Log-Reason must be at most 500 characters without control characters."),
    Refusal("1T101/1", "UNKNOWN_PARAMETER", 400, "There is no such parameter", Scope.EVERY,
            when="A parameter is not known here. `detail` names the nearest one that is.",
            at_fault="names",
            yields=True),
    Refusal("1T101/2", "INVALID_VALUE", 400, "A value is not allowed", Scope.DECLARED,
            when="A value is of the wrong type, or outside what is allowed. `errors` lists every field at fault.",
            at_fault="color"),
    Refusal("1T101/3", "INVALID_PARENT", 400, "The node cannot stand there", Scope.DECLARED,
            when="`parentId` names no node, the node itself, one below it, or one that takes no children.",
            at_fault="parentId"),
    Refusal("1T101/4", "INVALID_POSITION", 400, "There is no such place among the siblings", Scope.DECLARED,
            when="`before` or `after` names no child of the parent, or more than one place was asked for.",
            example="after: there is no other node 999 at the top level. Give the id of one that stands there.",
            at_fault="after"),
    Refusal("1T101/5", "INVALID_GROUP", 400, "There is no such group", Scope.DECLARED,
            when="A permission names a group that does not exist.",
            example="permissions.view names groups that do not exist: 999.",
            at_fault="permissions.view"),
    Refusal("1T101/6", "MISSING_VALUE", 400, "A value is needed", Scope.DECLARED,
            when="A field that is needed was not sent.",
            at_fault="url"),
    Refusal("1T101/7", "UNKNOWN_OPERATION", 400, "There is no such operation", Scope.NONE,
            when="A grant names no operation. Nobody grants over REST: only the panel and the terminal answer this.",
            at_fault="grants"),
    # --- other writers, and limits --------------------------------------------------------------------------------
    Refusal("1T102/1", "PRECONDITION_FAILED", 412, "The record is not the one you read", Scope.CONDITIONAL,
            when="`If-Match` was sent, and the record has changed since.",
            example="The record has changed since you read it: its ETag is not in If-Match. Get it again, and decide anew."),
    Refusal("1T102/2", "IDEMPOTENCY_KEY_REUSED", 422, "The idempotency key belongs to another request", Scope.IDEMPOTENT,
            when="The same `Idempotency-Key` came with another request within 24 hours.",
            example="This Idempotency-Key came with another request within the last 24 hours."),
    Refusal("1T102/3", "IDEMPOTENCY_KEY_IN_USE", 409, "The first request with this idempotency key is still running",
            Scope.IDEMPOTENT,
            when="The first request with this `Idempotency-Key` is still running.",
            example="A request with this Idempotency-Key is still running. Wait for its answer."),
    Refusal("1T103/1", "RATE_LIMITED", 429, "The key has used up its requests for now", Scope.EVERY,
            when="The key has used up its requests of this minute. `Retry-After` says how long to wait.",
            example="This key may send 6000 requests a minute, and has. Wait 42 seconds.",
            members=(
                _RETRY_AFTER,
                Member("limit", _COUNT, "how many requests a minute the key may send.", 6000),
                Member("reset", {"type": "integer"}, "when the next minute begins, in Unix seconds.", 1769851860),
            ),
            headers={"Retry-After": "{retryAfter}"}),
    # --- the panel and the terminal -------------------------------------------------------------------------------
    Refusal("1T105/1", "KEY_REVOKED", 409, "The key was revoked", Scope.NONE,
            when="A revoked key cannot be changed. Only the panel and the terminal answer this."),
    Refusal("1T108/1", "LOGIN_TAKEN", 409, "Another administrator has this login", Scope.NONE,
            when="Another administrator has this login. Only the panel and the terminal answer this.",
            at_fault="login"),
    Refusal("1T108/2", "LAST_ADMINISTRATOR", 409, "This is the only administrator who can sign in", Scope.NONE,
            when="Nobody else could sign in to the panel. Only the panel and the terminal answer this."),
    Refusal("1T108/3", "LINK_SPENT", 409, "The link cannot be used any more", Scope.NONE,
            when="The link to make the first administrator is used or too old. Only the panel answers this."),
    # --- undo -----------------------------------------------------------------------------------------------------
    Refusal("1T106/1", "NOT_RESTORABLE", 409, "This event cannot be undone", Scope.DECLARED,
            when="The event made something, is not about a node, or was undone already (`undoneBy` says by which event).",
            example="Event 12 was undone already, by event 15.",
            members=(Member("undoneBy", _NUMBER, "the event that undid it already.", 15),)),
    Refusal("1T106/2", "CHANGED_SINCE", 409, "The record was changed again since", Scope.DECLARED,
            when="The record was changed again since, or deleted. `differences` tells what would be lost.",
            example="The forum 7 was changed again since event 12 (event 14): name.",
            members=(
                Member("deletedBy", _NUMBER, "the event that deleted the record."),
                Member("differences",
                       {"type": "array", "items": {"type": "object", "required": ["field"],
                                                   "properties": {"field": {"type": "string"}, "then": {}, "now": {}}}},
                       "how the record differs from what the event left; a password is only named.",
                       [{"field": "name", "then": "News", "now": "Bulletin"}]),
            )),
    Refusal("1T106/3", "NO_LONGER_KEPT", 410, "What this asks for is no longer kept", Scope.DECLARED,
            when="The events behind `after`, or the rows that undoing needs, were purged.",
            example="What there was before event 12 is no longer kept: changes can be undone for 30 days.",
            members=(
                Member("oldest", _NUMBER, "the oldest event that is kept."),
                Member("newest", _NUMBER, "the newest event."),
            )),
    Refusal("1T106/4", "PARENT_NEEDED", 409, "The old parent cannot take it back", Scope.DECLARED,
            when="The parent that it stood under is gone, or takes no children now. `parentId` says where it shall go.",
            example="It cannot go back to where it was: there is no forum 3 now. Say with parentId where it shall go.",
            members=(Member("parentId", _NUMBER, "the parent that cannot take it back.", 3),)),
    # --- webhooks -------------------------------------------------------------------------------------------------
    Refusal("1T107/1", "ADDRESS_NOT_ALLOWED", 400, "Webhooks may not go to that address", Scope.DECLARED,
            when="A webhook's address is private, local or otherwise not on the open internet, or cannot be one.",
            example="url leads to 10.0.0.5, which is not on the open internet.",
            at_fault="url"),
    Refusal("1T107/2", "UNKNOWN_EVENT", 400, "There is no such event", Scope.DECLARED,
            when="A webhook asks for an event that there is not. `detail` names the nearest one.",
            example="events: there is no event 'forum.create'. Did you mean forum.created?",
            at_fault="events"),
    Refusal("1T107/3", "TOO_MANY_WEBHOOKS", 409, "There are as many webhooks as there may be", Scope.DECLARED,
            when="There are 100 webhooks already: delete one that is not needed.",
            example="There are 100 webhooks already. Delete one that is not needed."),
    Refusal("1T107/9", "WEBHOOK_OFF", 409, "The webhook is switched off", Scope.NONE,
            when="The webhook is switched off. Only the panel and the terminal answer this."),
    # --- our side -------------------------------------------------------------------------------------------------
    Refusal("4T104/1", "BUSY", 503, "The database is busy or cannot be reached", Scope.EVERY,
            when="The database did not take the request in time. Send it again after `Retry-After` seconds.",
            example="Too much is waiting to be written. Try again in a moment.",
            headers={"Retry-After": "1"}),
    Refusal("4T104/2", "INTERNAL_ERROR", 500, "Something went wrong on our side", Scope.EVERY,
            when="A mistake of ours. Tell the operator the `requestId`.",
            example="The service made a mistake. Nothing of this request was kept as far as we know."),
)
# fmt: on
REFUSALS: Final[Mapping[str, Refusal]] = MappingProxyType({refusal.message: refusal for refusal in _ROWS})


def with_codes(*messages: str) -> tuple[tuple[str, str], ...]:
    """Pair messages with their codes, as an operation declares the refusals that it may answer with."""
    return tuple((message, REFUSALS[message].code) for message in messages)
