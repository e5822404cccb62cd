"""The table of refusals: one row for each error that Trellis can return on purpose, with everything that is said about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final


class Scope(Enum):
    """Which operations can return a refusal over REST."""

    EVERY = "every operation"
    GRANTED = "every operation that needs a grant"
    WRITES = "every write"
    CONDITIONAL = "every write that takes If-Match"
    IDEMPOTENT = "every write that takes an Idempotency-Key"
    DECLARED = "the operations that declare it, and those with a field whose type refuses values with it"
    NONE = "no operation: it is returned before one is found, or only by the panel and the terminal"


@dataclass(frozen=True, slots=True)
class Member:
    """A member that a refusal adds to its problem document.

    `schema` is its JSON Schema, `doc` describes it. `example` appears in the example of the problem document unless it is None,
    which marks a member that is present only in some cases.
    """

    name: str
    schema: Mapping[str, Any]
    doc: str
    example: Any = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """One row of the table.

    `code` and `message` are stable and unique; `status` is the HTTP status, `title` a short summary for people, and `when` the
    sentence in the reference. `at_fault` is the invalid field in the example of a refusal that lists such fields in `errors`, and
    empty for one that lists none. `members` and `headers` are added to the problem document and to the response; `{name}` in a
    header's value stands for a member. `example` is an example of the detail, in which `{operation}` and `{singular}` stand for the
    operation's name and the name of its record; it is empty if the title says enough, or if the fields of the operation provide
    one. If a request has several faults, a refusal that `yields` leaves the code of the response to another. At most
    `most_faults` are listed.
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
    most_faults: int = 20


_COUNT: Final = {"type": "integer", "minimum": 0}
_NUMBER: Final = {"type": "integer", "minimum": 1}
_RETRY_AFTER: Final = Member("retryAfter", _COUNT, "how many seconds to wait.", 42)

# Codes 2S290 … 1S359 and the kinds' own are those of the contract; 1T… and 4T… are Trellis's.
# Each row is laid out as a paragraph; a formatter would put each cell on a line of its own.
# fmt: off
_ROWS: Final = (
    # --- the key --------------------------------------------------------------------------------------------------
    Refusal("2S290/6", "NO_API_KEY", 401, "An API key is needed", Scope.EVERY,
            when="No key was sent.",
            example="Send an API key as `Authorization: Bearer KEY` (or as the user name of Basic, or as `X-API-Key: KEY`).",
            headers={"WWW-Authenticate": 'Bearer realm="trellis"'}),
    Refusal("3S290/7", "INVALID_API_KEY", 401, "The API key is not valid", Scope.EVERY,
            when="The key is unknown, malformed, expired or revoked. The response does not say which.",
            example="The key is unknown or no longer valid. Check that you copied all of it, or ask an administrator.",
            headers={"WWW-Authenticate": 'Bearer realm="trellis"'}),
    Refusal("2S290/8", "IP_ADDRESS_NOT_ALLOWED", 403, "This key may not be used from this address", Scope.EVERY,
            when="The key has a list of allowed addresses, and the caller's address is not on it.",
            example="This key may not be used from 198.51.100.7."),
    Refusal("2S290/B", "CANNOT_USE_KEY_AS_URL_PARAM", 403, "The key may not be sent in the URL", Scope.EVERY,
            when="The key was sent as `?key=`, which this service does not accept.",
            example="URLs end up in logs and browser histories, so this service does not accept keys in them."),
    Refusal("1S290/D", "TOO_MANY_REQUESTS_WITH_BAD_KEY", 429, "Too many requests with a bad key", Scope.EVERY,
            when="The caller's address sent too many requests without a valid key. Wait for `Retry-After` seconds.",
            example="198.51.100.7 sent too many requests without a valid key. Wait 42 seconds.",
            members=(_RETRY_AFTER,),
            headers={"Retry-After": "{retryAfter}"}),
    Refusal("2S291/3", "NO_PERMISSION", 403, "The key lacks this operation", Scope.GRANTED,
            when="The key has not been granted this operation. `missingOperation` names it.",
            example="The key 'Plugin' has not been granted {operation}.",
            members=(
                Member("missingOperation", {"type": "string"}, "the operation that the key has not been granted.", "{operation}"),
            )),
    # --- the address ----------------------------------------------------------------------------------------------
    Refusal("2S291/1", "NO_ENDPOINT", 404, "There is no such endpoint", Scope.NONE,
            when="The path is not one of those listed here.",
            example="There is no endpoint at '/nowhere'."),
    Refusal("3S291/2", "BAD_METHOD", 405, "This path does not support that method", Scope.NONE,
            when="The path exists but does not support the method. `Allow` lists the methods that it does.",
            example="This path does not support 'PUT'; it supports GET, HEAD, OPTIONS, POST.",
            members=(Member("allow", {"type": "string"}, "the methods that the path supports.", "GET, HEAD, OPTIONS, POST"),),
            headers={"Allow": "{allow}"}),
    Refusal("1S359/1", "INVALID_ID", 404, "There is no such record", Scope.DECLARED,
            when="No record has this id. Each operation has its own code.",
            example="There is no {singular} with the id 999."),
    # --- nodes ----------------------------------------------------------------------------------------------------
    Refusal("1S359/2", "INVALID_TARGET", 400, "The children cannot go there", Scope.DECLARED,
            when="`deleteChildrenOrMove` is neither -1 nor the id of a node that the children can move to.",
            at_fault="deleteChildrenOrMove"),
    Refusal("1S359/3", "HAS_CHILDREN", 409, "The node has children", Scope.DECLARED,
            when="The node has children, and `deleteChildrenOrMove` was not sent. `children` is their number.",
            example="'News' has 2 children (5 descendants in all). Send deleteChildrenOrMove=-1 to delete them too.",
            members=(
                Member("children", _NUMBER, "the number of children.", 2),
                Member("descendants", _NUMBER, "the number of all nodes below it.", 5),
                Member("options",
                       {"type": "object", "required": ["delete", "move"],
                        "properties": {"delete": {"type": "integer", "maximum": -1}, "move": {"type": "string"}}},
                       "the values that `deleteChildrenOrMove` can have.", {"delete": -1, "move": "the id of another node"}),
            )),
    Refusal("1F363/2", "NO_TITLE", 400, "A name is needed", Scope.DECLARED,
            when="The name is missing or empty.",
            at_fault="name"),
    Refusal("1F363/3", "NO_REDIRECT_URL", 400, "A redirect needs a URL", Scope.DECLARED,
            when="The type is `redirect`, and there is no `redirectUrl`.",
            example="redirectUrl is required when type is redirect: send an http or https URL.",
            at_fault="redirectUrl"),
    Refusal("1F363/4", "INVALID_TYPE", 400, "There is no such type", Scope.DECLARED,
            when="The type is not one of those listed.",
            at_fault="type"),
    Refusal("1T109/2", "TREE_TOO_LARGE", 400, "The tree is too large for one response", Scope.DECLARED,
            when="The tree has more than 10,000 nodes or 100 levels. `depth` or `root` asks for a part of it.",
            example="There are more than 10,000 nodes in it. Send a smaller depth, or the id of a part as root."),
    Refusal("2C358/3", "CANNOT_DELETE", 403, "This record is built in", Scope.DECLARED,
            when="Built-in records cannot be deleted.",
            example="Members is built in and cannot be deleted."),
    Refusal("1T109/1", "EXTERNAL_ID_TAKEN", 409, "Another node has this external id", Scope.DECLARED,
            when="`externalId` belongs to another node of the kind already. `id` says to which.",
            example="The {singular} 7 has the external id 'news' already. Change that one, or choose another id.",
            members=(Member("id", _NUMBER, "the node that has it.", 7),)),
    # --- the body, the headers and the fields ---------------------------------------------------------------------
    Refusal("1T100/1", "MALFORMED_REQUEST", 400, "The request could not be understood", Scope.EVERY,
            when="The body or the query string cannot be parsed: invalid JSON, a name sent twice, bytes that are not UTF-8.",
            example="The parameter 'dryRun' is sent more than once."),
    Refusal("1T100/2", "UNSUPPORTED_MEDIA_TYPE", 415, "The body is of an unsupported type", Scope.WRITES,
            when="The body is neither JSON nor a form.",
            example="The Content-Type is 'text/plain'. Send Content-Type: application/json with a JSON object."),
    Refusal("1T100/3", "BODY_TOO_LARGE", 413, "The body is too large", Scope.WRITES,
            when="The body is larger than this service accepts.",
            example="The body is larger than 1,048,576 bytes, the limit of this service."),
    Refusal("1T100/4", "INVALID_HEADER", 400, "A header has a value that is not allowed", Scope.WRITES,
            when="`Idempotency-Key` or `X-Audit-Log-Reason` is too long or contains characters that are not allowed, "
                 "or `If-Match` is not a list of tags, or was sent with an operation that changes no record that is there already.",
            example="X-Audit-Log-Reason must be at most 500 characters without control characters."),
    Refusal("1T101/1", "UNKNOWN_PARAMETER", 400, "There is no such parameter", Scope.EVERY,
            when="The operation does not have this parameter. `detail` suggests the nearest one.",
            at_fault="names",
            yields=True),
    Refusal("1T101/2", "INVALID_VALUE", 400, "A value is not allowed", Scope.DECLARED,
            when="A value is of the wrong type or out of range. `errors` lists the invalid fields.",
            at_fault="color"),
    Refusal("1T101/3", "INVALID_PARENT", 400, "The node cannot have this parent", Scope.DECLARED,
            when="`parentId` is not the id of a node, or is the node itself, one below it, or one that cannot have children.",
            at_fault="parentId"),
    Refusal("1T101/4", "INVALID_POSITION", 400, "There is no such position among the siblings", Scope.DECLARED,
            when="`before` or `after` is not a child of the parent, or more than one of `position`, `before` and `after` was sent.",
            example="after: there is no other node 999 at the top level. Send the id of a node that is there.",
            at_fault="after"),
    Refusal("1T101/5", "INVALID_GROUP", 400, "There is no such group", Scope.DECLARED,
            when="A permission names a group that does not exist.",
            example="permissions.view names groups that do not exist: 999.",
            at_fault="permissions.view"),
    Refusal("1T101/6", "MISSING_VALUE", 400, "A value is missing", Scope.DECLARED,
            when="A required field was not sent.",
            at_fault="url"),
    Refusal("1T101/7", "UNKNOWN_OPERATION", 400, "There is no such operation", Scope.NONE,
            when="A grant names an operation that does not exist. Grants are made only in the panel and at the terminal.",
            at_fault="grants"),
    # --- other writers, and limits --------------------------------------------------------------------------------
    Refusal("1T102/1", "PRECONDITION_FAILED", 412, "The record is not the one you read", Scope.CONDITIONAL,
            when="`If-Match` was sent, and the record has changed since.",
            example="The record has changed since you read it: its ETag is not in If-Match. Read it again before you change it."),
    Refusal("1T102/2", "IDEMPOTENCY_KEY_REUSED", 422, "The idempotency key belongs to another request", Scope.IDEMPOTENT,
            when="The same `Idempotency-Key` was sent with a different request within the last 24 hours.",
            example="This Idempotency-Key was sent with a different request within the last 24 hours."),
    Refusal("1T102/3", "IDEMPOTENCY_KEY_IN_USE", 409, "The first request with this idempotency key is still running",
            Scope.IDEMPOTENT,
            when="The first request with this `Idempotency-Key` is still running.",
            example="A request with this Idempotency-Key is still running. Wait for its response."),
    Refusal("1T103/1", "RATE_LIMITED", 429, "The key has reached its rate limit", Scope.EVERY,
            when="The key has reached its limit of requests per minute. `Retry-After` says how long to wait.",
            example="This key has reached its limit of 6000 requests per minute. Wait 42 seconds.",
            members=(
                _RETRY_AFTER,
                Member("limit", _COUNT, "how many requests per minute the key may send.", 6000),
                Member("reset", {"type": "integer"}, "when the next minute begins, as a Unix timestamp in seconds.", 1769851860),
            ),
            headers={"Retry-After": "{retryAfter}"}),
    Refusal("1T103/9", "TOO_MUCH_UNREAD", 503, "Too many large answers wait to be read", Scope.EVERY,
            when="Large answers to earlier requests have not been read yet: by this key, or by all. Only reads answer this.",
            example="67,108,864 bytes of earlier answers wait to be read by this caller. Read them, or end the connections.",
            headers={"Retry-After": "1"}),
    # --- the panel and the terminal -------------------------------------------------------------------------------
    Refusal("1T105/1", "KEY_REVOKED", 409, "The key was revoked", Scope.NONE,
            when="A revoked key cannot be changed. Only the panel and the terminal return this."),
    Refusal("1T108/1", "LOGIN_TAKEN", 409, "Another administrator has this login", Scope.NONE,
            when="Another administrator has this login. Only the panel and the terminal return this.",
            at_fault="login"),
    Refusal("1T108/2", "LAST_ADMINISTRATOR", 409, "This is the only administrator who can sign in", Scope.NONE,
            when="Nobody else could sign in to the panel. Only the panel and the terminal answer this."),
    Refusal("1T108/3", "LINK_SPENT", 409, "The link cannot be used any more", Scope.NONE,
            when="The link to make the first administrator is used or too old. Only the panel answers this."),
    Refusal("4T108/4", "TOO_MANY_PASSWORDS", 503, "Too many passwords wait", Scope.DECLARED,
            when="Too many passwords of this key, this person or this address wait to be checked or kept, which is slow on "
                 "purpose. Send it again after `Retry-After` seconds.",
            example="Too many passwords wait to be checked or kept. Nothing was changed; try again.",
            headers={"Retry-After": "1"}),
    # --- many operations at once ----------------------------------------------------------------------------------
    Refusal("1T110/1", "BATCH_REFUSED", 409, "An operation of the batch was refused", Scope.DECLARED,
            when="An operation of a batch was refused, and nothing of the batch was done. `problem` says why.",
            example="Operation 1 of the batch ('forums.create') was refused, so nothing was done. name is needed.",
            members=(
                Member("index", _COUNT, "which operation was refused, counted from 0.", 1),
                Member("operation", {"type": "string"}, "the name of that operation.", "forums.create"),
                Member("problem", {"type": "object"}, "its problem document."),
            )),
    Refusal("1T110/2", "BATCH_TOO_LARGE", 409, "The batch does too much at once", Scope.DECLARED,
            when="The operations of a batch change more records, or return more, than a batch may.",
            example="The first 14 operations change more than 10,000 records, or return more than 8 MiB. Nothing was done."),
    Refusal("1T110/3", "SETS_TOO_MANY_PASSWORDS", 409, "Too many passwords are set at once", Scope.DECLARED,
            when="The operations of a batch, or the entries of a structure document, set more passwords than one request may. "
                 "Setting one is slow on purpose.",
            example="This sets 21 passwords, and one request may set at most 20. Nothing was done. Set fewer of them at once."),
    Refusal("1T111/1", "RESTORE_CONFLICTS", 409, "Some events cannot be undone", Scope.DECLARED,
            when="Some of the events cannot be undone, and nothing was changed. `conflicts` says which, and why; `purgedCount` how "
                 "many are no longer kept.",
            example="1 of 2 events cannot be undone, so nothing was changed. Send skipConflicts to undo the others.",
            members=(
                Member("conflicts", {"type": "array", "items": {"type": "object"}}, "the events that cannot be undone.", []),
                Member("purgedCount", {"type": ["integer", "null"], "minimum": 0}, "how many events more are no longer kept.", 0),
            )),
    Refusal("1T111/3", "CHANGE_SET_TOO_LARGE", 409, "There are too many events to undo at once", Scope.DECLARED,
            when="There are more events than can be undone in one transaction. `detail` says how to undo them in parts.",
            example="There are 12,000 events to undo, and at most 10,000 can be undone at once. Nothing was changed. "
                    "Send after=4711 to undo the newest of them, and then the rest.",
            members=(Member("after", _COUNT, "the event after which there are few enough.", 4711),)),
    # --- documents ------------------------------------------------------------------------------------------------
    Refusal("1T112/1", "INVALID_DOCUMENT", 400, "The structure document is not valid", Scope.DECLARED,
            when="The document cannot be read, or something in it is not allowed. `errors` lists all of it, each with its place.",
            example="line 14: there is no group 'mods'.",
            at_fault="forums[0].permissions.read",
            most_faults=200),  # a person corrects it with an editor
    Refusal("1T112/2", "EMPTY_DOCUMENT", 409, "The document or one of its sections is empty", Scope.DECLARED,
            when="The document, or one of its sections, has nothing in it, and `allowEmpty` was not sent.",
            example="forums is empty. If that is right, send allowEmpty."),
    Refusal("1T112/3", "TOO_MANY_DELETES", 409, "More would be deleted than is allowed", Scope.DECLARED,
            when="More nodes would be deleted than `maxDeletes` allows. `deletes` is their number.",
            example="12 nodes would be deleted, and maxDeletes allows 10.",
            members=(Member("deletes", _COUNT, "how many nodes would be deleted.", 12),)),
    Refusal("1T112/4", "PLAN_OUTDATED", 409, "The community has changed since the plan", Scope.DECLARED,
            when="Something of what the plan read has changed since. `changes` lists the events. Plan again.",
            example="1 change has been made since the plan: event 814, forums.update of 7. Nothing was done. Plan again.",
            members=(
                Member("changes", {"type": "array", "items": {"type": "object"}}, "the events since the plan; at most 100.", []),
            )),
    Refusal("1T112/5", "PLAN_DIFFERS", 409, "This is not what was planned", Scope.DECLARED,
            when="The document or the options are not those of the plan that was sent with them.",
            example="With this document and these options, something else would be done than was planned. Plan again."),
    # --- undo -----------------------------------------------------------------------------------------------------
    Refusal("1T106/1", "NOT_RESTORABLE", 409, "This event cannot be undone", Scope.DECLARED,
            when="The event created something, is not about a node, or has already been undone (`undoneBy` says by which event).",
            example="Event 12 has already been undone, by event 15.",
            members=(Member("undoneBy", _NUMBER, "the event that undid it.", 15),)),
    Refusal("1T106/2", "CHANGED_SINCE", 409, "The record has changed since the event", Scope.DECLARED,
            when="The record has been changed again or deleted since. `differences` lists what would be lost.",
            example="Forum 7 has been changed again since event 12 (by event 14): name.",
            members=(
                Member("deletedBy", _NUMBER, "the event that deleted the record."),
                Member("differences",
                       {"type": "array", "items": {"type": "object", "required": ["field"],
                                                   "properties": {"field": {"type": "string"}, "then": {}, "now": {}}}},
                       "how the record differs from its state after the event; the value of a password is not included.",
                       [{"field": "name", "then": "News", "now": "Bulletin"}]),
            )),
    Refusal("1T106/3", "NO_LONGER_KEPT", 410, "The requested data has been purged", Scope.DECLARED,
            when="The events after `after`, or the data needed for the undo, have been purged.",
            example="The data needed to undo event 12 has been purged: changes can be undone for 30 days.",
            members=(
                Member("oldest", _NUMBER, "the oldest event that is still there."),
                Member("newest", _NUMBER, "the newest event."),
            )),
    Refusal("1T106/4", "PARENT_NEEDED", 409, "The node needs a new parent", Scope.DECLARED,
            when="The old parent is gone or can no longer have children. Send `parentId` to choose another.",
            example="It cannot return to its old place: there is no forum 3. Send parentId: an id, or null for the top level.",
            members=(Member("parentId", _NUMBER, "the old parent.", 3),)),
    # --- webhooks -------------------------------------------------------------------------------------------------
    Refusal("1T107/1", "ADDRESS_NOT_ALLOWED", 400, "Webhooks may not go to that address", Scope.DECLARED,
            when="A webhook's address is invalid, private, local or otherwise not on the public internet.",
            example="url leads to 10.0.0.5, which is not on the public internet.",
            at_fault="url"),
    Refusal("1T107/2", "UNKNOWN_EVENT", 400, "There is no such event", Scope.DECLARED,
            when="A webhook subscribes to an event that does not exist. `detail` suggests the nearest one.",
            example="events: there is no event 'forum.create'. Did you mean forum.created?",
            at_fault="events"),
    Refusal("1T107/3", "TOO_MANY_WEBHOOKS", 409, "The limit of webhooks is reached", Scope.DECLARED,
            when="There are 100 webhooks already: delete one that is not needed.",
            example="There are 100 webhooks already. Delete one that is not needed."),
    Refusal("1T107/9", "WEBHOOK_OFF", 409, "The webhook is switched off", Scope.NONE,
            when="The webhook is switched off. Only the panel and the terminal return this."),
    Refusal("1T113/1", "TOO_LONG", 409, "The request takes too long as a whole", Scope.WRITES,
            when="A request that runs many operations has kept all other writes waiting for too long. Nothing of it was done.",
            example="Nothing was done: core.batch had not ended after 20 seconds, in which all others waited. Send it in parts."),
    # --- our side -------------------------------------------------------------------------------------------------
    Refusal("4T104/1", "BUSY", 503, "The database is busy or cannot be reached", Scope.EVERY,
            when="The database did not accept the request in time. Send it again after `Retry-After` seconds.",
            example="Too many writes are waiting. Try again in a moment.",
            headers={"Retry-After": "1"}),
    Refusal("4T104/2", "INTERNAL_ERROR", 500, "Something went wrong on our side", Scope.EVERY,
            when="A bug in Trellis. Tell the operator the `requestId`.",
            example="The service failed unexpectedly. As far as we know, nothing of this request was saved."),
)
# fmt: on
REFUSALS: Final[Mapping[str, Refusal]] = MappingProxyType({refusal.message: refusal for refusal in _ROWS})


def with_codes(*messages: str) -> tuple[tuple[str, str], ...]:
    """Pair messages with their codes, as an operation declares the refusals that it can return."""
    return tuple((message, REFUSALS[message].code) for message in messages)
