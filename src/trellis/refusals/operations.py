"""The rows about operations: the panel, many calls at once, documents, proposals, undo, webhooks; and our own failures."""

from typing import Final

from trellis.refusals.refusal import COUNT, NUMBER, Member, Refusal, Scope

# 1T… and 4T… are codes of Trellis. The layout is the same as in requests.py.
# fmt: off
ROWS: Final = (
    # --- the panel and the terminal -------------------------------------------------------------------------------
    Refusal("1T105/1", "KEY_REVOKED", 409, "The key was revoked", Scope.NONE,
            when="A revoked key cannot be changed. Only the panel and the terminal return this."),
    Refusal("1T108/1", "LOGIN_TAKEN", 409, "Another administrator has this login", Scope.NONE,
            when="Another administrator has this login. Only the panel and the terminal return this.",
            at_fault="login"),
    Refusal("1T108/2", "LAST_ADMINISTRATOR", 409, "This is the only owner who can sign in", Scope.NONE,
            when="Nobody else could give roles and reset passwords in the panel. Only the panel and the terminal return this."),
    Refusal("1T108/6", "OWN_ACCOUNT", 403, "This is your own account", Scope.NONE,
            when="Administrators cannot disable themselves. Only the panel returns this."),
    Refusal("1T108/A", "ROLE_NEEDED", 403, "Your role may not do this", Scope.NONE,
            when="An administrator has a role that may not run the operation. Only the panel returns this.",
            example="keys.create is for owners and key managers. Ada is an auditor. An owner can change roles.",
            members=(
                Member("missingOperation", {"type": "string"}, "the operation that the role may not run.", "keys.create"),
                Member("roles", {"type": "array", "items": {"type": "string"}}, "the roles that may.", ["owner"]),
            )),
    Refusal("1T108/3", "LINK_SPENT", 409, "The link cannot be used any more", Scope.NONE,
            when="The link of an administrator, to create the first one or accept an invitation, was used, withdrawn or is too "
                 "old. Only the panel and the terminal return this."),
    Refusal("1T108/B", "NOT_INVITED", 409, "They cannot be invited", Scope.NONE,
            when="The administrator to be invited is disabled, or can already sign in. Only the panel and the "
                 "terminal return this."),
    Refusal("1T108/5", "WRONG_SECOND_FACTOR", 403, "The second factor is not right", Scope.NONE,
            when="The code or passkey of an administrator is wrong, has already been used, or cannot be added. Only the panel "
                 "and the terminal return this."),
    Refusal("1T108/S", "SIGN_ON_REFUSED", 403, "The sign-in at the provider was refused", Scope.NONE,
            when="Somebody who signed in at the provider is not an administrator, has no group with a role, or came back too late "
                 "or twice. Only the panel returns this."),
    Refusal("1T108/T", "IDENTITY_TAKEN", 409, "The account at the provider is linked already", Scope.NONE,
            when="An account at the provider belongs to another administrator, or an administrator has another one. Only the "
                 "panel returns this."),
    Refusal("1T108/U", "LOCAL_SIGN_IN_OFF", 409, "Sign in at the provider", Scope.NONE,
            when="An administrator who has to sign in at the provider used a password or a passkey. Only the panel returns "
                 "this."),
    Refusal("4T108/4", "TOO_MANY_PASSWORDS", 503, "Too many passwords wait", Scope.DECLARED,
            when="Too many passwords of this key, this person or this address are waiting to be checked or stored, which is slow "
                 "on purpose. Send it again after `Retry-After` seconds.",
            example="Too many passwords are waiting to be checked or stored. Nothing was changed; try again.",
            headers={"Retry-After": "1"}),
    # --- many operations at once ----------------------------------------------------------------------------------
    Refusal("1T110/1", "BATCH_REFUSED", 409, "An operation of the batch was refused", Scope.DECLARED,
            when="An operation of a batch was refused, and nothing of the batch was done. `problem` says why.",
            example="Operation 1 of the batch ('forums.create') was refused, so nothing was done. name is needed.",
            members=(
                Member("index", COUNT, "which operation was refused, counted from 0.", 1),
                Member("operation", {"type": "string"}, "the name of that operation.", "forums.create"),
                Member("problem", {"type": "object"}, "its problem document."),
            )),
    Refusal("1T110/2", "BATCH_TOO_LARGE", 409, "The batch does too much at once", Scope.DECLARED,
            when="The operations of a batch change more records, or return more, than a batch may.",
            example="The first 14 operations change more than 10,000 records, or return more than 8 MiB. Nothing was done."),
    Refusal("1T110/3", "SETS_TOO_MANY_PASSWORDS", 409, "Too many passwords are set at once", Scope.DECLARED,
            when="The operations of a batch, or the entries of a structure document, set more passwords than one request may. "
                 "Setting one is slow on purpose.",
            example="This request sets 21 passwords, but at most 20 are allowed. Nothing was done. Set fewer of them at once."),
    Refusal("1T111/1", "RESTORE_CONFLICTS", 409, "Some events cannot be undone", Scope.DECLARED,
            when="Some of the events cannot be undone, and nothing was changed. `conflicts` says which, and why; `purgedCount` "
                 "says how many are no longer kept.",
            example="1 of 2 events cannot be undone, so nothing was changed. Send skipConflicts (--skip-conflicts) to "
                    "undo the others.",
            members=(
                Member("conflicts", {"type": "array", "items": {"type": "object"}}, "the events that cannot be undone.", []),
                Member("purgedCount", {"type": ["integer", "null"], "minimum": 0}, "how many more events are no longer kept.", 0),
            )),
    Refusal("1T111/3", "CHANGE_SET_TOO_LARGE", 409, "There are too many events to undo at once", Scope.DECLARED,
            when="There are more events than can be undone in one transaction. `detail` says how to undo them in parts.",
            example="There are more than 10,000 events to undo, which is the most that can be undone at once. Nothing was changed. "
                    "Send after=4711 to undo the newest of them, and then the rest.",
            members=(Member("after", COUNT, "the event after which there are few enough.", 4711),)),
    # --- documents ------------------------------------------------------------------------------------------------
    Refusal("1T112/1", "INVALID_DOCUMENT", 400, "The structure document is not valid", Scope.DECLARED,
            when="The document cannot be read, or something in it is not allowed. `errors` lists all of it, each with its place.",
            example="line 14: there is no group 'mods'.",
            at_fault="forums[0].permissions.read",
            most_faults=200),  # a person corrects it with an editor
    Refusal("1T112/2", "EMPTY_DOCUMENT", 409, "The document or one of its sections is empty", Scope.DECLARED,
            when="The document, or one of its sections, has nothing in it, and `allowEmpty` was not sent.",
            example="There is nothing in forums. If that is intended, allow it with allowEmpty (--allow-empty)."),
    Refusal("1T112/3", "TOO_MANY_DELETES", 409, "More would be deleted than is allowed", Scope.DECLARED,
            when="More nodes would be deleted than `maxDeletes` allows. `deletes` is their number.",
            example="12 nodes would be deleted, and at most 10 may be. If that is intended, allow it with "
                    "maxDeletes (--max-deletes).",
            members=(Member("deletes", COUNT, "how many nodes would be deleted.", 12),)),
    Refusal("1T112/4", "PLAN_OUTDATED", 409, "The community has changed since the plan", Scope.DECLARED,
            when="Something that the plan read has changed since. `changes` lists the events. Make a new plan.",
            example="1 change has been made since the plan: event 814, forums.update of 7. Nothing was done. Make a new plan.",
            members=(
                Member("changes", {"type": "array", "items": {"type": "object"}}, "the events since the plan; at most 100.", []),
            )),
    Refusal("1T112/5", "PLAN_DIFFERS", 409, "This is not what was planned", Scope.DECLARED,
            when="The document or the options are not those of the plan that was sent with them.",
            example="This document, the passwords in it and these options would not do what was planned. Make a new plan."),
    # --- proposals ------------------------------------------------------------------------------------------------
    Refusal("1T115/1", "PROPOSAL_CLOSED", 409, "The proposal is not open", Scope.DECLARED,
            when="The proposal was approved, rejected or withdrawn, or has expired. `state` says which.",
            example="Proposal 5 is no longer open. It was rejected. Ada closed it at 2026-01-31T09:30:00.000Z.",
            members=(Member("state", {"type": "string"}, "how it ended.", "rejected"),)),
    Refusal("1T115/2", "PROPOSAL_OUTDATED", 409, "What the proposal touches has changed", Scope.DECLARED,
            when="Something that the call would affect has changed since it was proposed. `changes` lists the events since, "
                 "`differences` the members that differ. It has to be proposed again.",
            example="Nothing was done: what proposal 5 affects has changed since it was made (event 814, forums.update of 12; "
                    "another name). Ask for a new proposal.",
            members=(
                Member("changes", {"type": "array", "items": {"type": "object"}}, "the events since; at most 100.",
                       [{"event": 814, "operation": "forums.update", "resource": "forums", "id": 12,
                         "at": "2026-01-31T09:30:00.000Z"}]),
                Member("differences", {"type": "array", "items": {"type": "object"}}, "how records differ; at most 100.",
                       [{"resource": "forums", "id": 12, "field": "name", "then": "Roses", "now": "Rose garden"}]),
            )),
    Refusal("1T115/3", "PROPOSAL_REFUSED", 409, "The call that was proposed was refused", Scope.DECLARED,
            when="The call was refused when it was run as its proposer: the key was revoked or lost the grant, the record "
                 "is gone, … `problem` says why. The proposal stays open.",
            example="Nothing was done: forums.delete, run as Gardener, was refused. There is no forum with the id 12.",
            members=(Member("problem", {"type": "object"}, "the problem document of the call."),)),
    Refusal("1T115/4", "TOO_MANY_PROPOSALS", 409, "The key has too many open proposals", Scope.PROPOSABLE,
            when="The key may only propose this, and has reached the limit of open proposals. `limit` is that limit.",
            example="Nothing was proposed: the key has 50 open proposals, which is the limit. Wait until some are closed, or "
                    "withdraw some.",
            members=(Member("limit", COUNT, "how many proposals of a key may be open.", 50),)),
    Refusal("1T115/5", "PASSWORD_IN_PROPOSAL", 409, "A password cannot be proposed", Scope.PROPOSABLE,
            when="The key may only propose this, and the request contains a password, which would have to be stored until "
                 "somebody approves it.",
            example="A password cannot be proposed, since it would have to be stored until somebody approves it. Nothing was "
                    "done."),
    Refusal("1T115/6", "OWN_PROPOSAL", 403, "It is the caller's own proposal", Scope.DECLARED,
            when="Nobody can decide on a proposal of their own.",
            example="Proposal 5 was made by the caller. Somebody else has to decide on it."),
    Refusal("1T115/B", "PROPOSAL_TOO_LARGE", 409, "The proposal would be too large", Scope.PROPOSABLE,
            when="The key may only propose this, and the call, together with what it would change, is larger than can be shown to "
                 "those who decide. `limit` is the limit in bytes. Propose it in parts.",
            example="Nothing was proposed: the proposal, with what it would change, would take 15,728,913 bytes, and at most "
                    "7,340,032 can be shown to those who decide. Propose it in parts.",
            members=(Member("limit", COUNT, "how many bytes a proposal may take.", 7_340_032),)),
    # --- undo -----------------------------------------------------------------------------------------------------
    Refusal("1T106/1", "NOT_RESTORABLE", 409, "This event cannot be undone", Scope.DECLARED,
            when="The event created something, is not about a node, or has already been undone (`undoneBy` says by which event); "
                 "or what it deleted is there again.",
            example="Event 12 has already been undone, by event 15.",
            members=(Member("undoneBy", NUMBER, "the event that undid it.", 15),)),
    Refusal("1T106/2", "CHANGED_SINCE", 409, "The record has changed since the event", Scope.DECLARED,
            when="The record has been changed again or deleted since. `differences` lists what would be lost.",
            example="Forum 7 has been changed again since event 12 (by event 14): name.",
            members=(
                Member("deletedBy", NUMBER, "the event that deleted the record."),
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
                Member("oldest", NUMBER, "the oldest event that is still there."),
                Member("newest", NUMBER, "the newest event."),
            )),
    Refusal("1T106/4", "PARENT_NEEDED", 409, "The node needs a new parent", Scope.DECLARED,
            when="The old parent is gone, can no longer have children, or is too deep now. Send `parentId` to choose another.",
            example="The node cannot go back to its old parent: there is no forum 3. Send parentId (--to): an id, or null "
                    "(root) for the top level.",
            members=(Member("parentId", NUMBER, "the old parent.", 3),)),
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
            when="There are already 100 webhooks. Delete one that is not needed.",
            example="There are already 100 webhooks. Delete one that is not needed."),
    Refusal("1T107/E", "ALARMS_ARE_FOR_OWNERS", 403, "Alarms are for owners", Scope.DECLARED,
            when="Only owners can have alarms sent to a webhook, change the address of one that gets them, or switch it on.",
            example="Only an owner, or somebody at the terminal, can have alarm.* sent to an address: alarms show who may do "
                    "what here, and who signs in. Nothing was changed."),
    Refusal("1T107/9", "WEBHOOK_OFF", 409, "The webhook is switched off", Scope.NONE,
            when="The webhook is switched off. Only the panel and the terminal return this."),
    Refusal("1T113/1", "TOO_LONG", 409, "The request takes too long as a whole", Scope.WRITES,
            when="A request, such as a batch or the copy of very many nodes, kept all other writes waiting for too long. "
                 "Nothing was done.",
            example="Nothing was done: core.batch had not finished after 20 seconds, while all other writes waited. Send it in "
                    "parts."),
    # --- our side -------------------------------------------------------------------------------------------------
    Refusal("4T104/1", "BUSY", 503, "The database is busy or cannot be reached", Scope.EVERY,
            when="The database did not accept the request in time, or cannot be used at the moment. "
                 "Send it again after `Retry-After` seconds, unless the detail says that a write may have been made.",
            example="Too many writes are already waiting. Nothing was changed; try again in a moment.",
            headers={"Retry-After": "1"}),
    Refusal("4T104/2", "INTERNAL_ERROR", 500, "Something went wrong on our side", Scope.EVERY,
            when="A bug in Trellis. Tell the operator the `requestId`.",
            example="The service failed unexpectedly. As far as we know, nothing from this request was saved."),
)
# fmt: on
