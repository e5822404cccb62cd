"""The operations that read proposals."""

from dataclasses import replace
from typing import Final

from trellis.core.fields import Field, NodeId, Text, invalid_id
from trellis.core.gate import Gate
from trellis.core.operation import Access, Basis, Context, Operation, Outcome
from trellis.core.paging import PAGING, parse_paging, serialize_page
from trellis.core.proposals.record import LOGGED, STATE, WHOLE, serialize_content, serialize_proposals
from trellis.core.proposals.verbs import PATH
from trellis.core.proposals.visibility import find_visible, sees_all
from trellis.core.verbs import GET, LIST
from trellis.sentences import say
from trellis.store import proposals

_CODE: Final = "1T115/7"
FILTERS: Final = (
    Field("state", STATE, "Only proposals in this state."),
    Field("operation", Text(100), "Only proposals of this operation, such as forums.delete."),
    Field("keyId", NodeId(), "Only proposals of the key with this id. A key that may not approve sees only its own."),
)


def operations() -> tuple[Operation, ...]:
    """Return the operations."""
    get = Operation(
        name=f"proposals.{GET.name}",
        summary="Get a proposal",
        doc="Returns a proposal of this key, or any proposal if the key may approve or reject them, with its state and what "
        "it would change.",
        run=_get,
        access=Access(Basis.ANY_KEY, for_proposers=True),
        verb=GET,
        path=PATH,
        refusals=(("INVALID_ID", _CODE),),
        response_fields=WHOLE,
        logged=LOGGED,
        varies=True,
    )
    return (
        replace(
            get,
            name=f"proposals.{LIST.name}",
            summary="List proposals",
            doc="Returns one page of the proposals that this key has made, newest first; a key that may approve or reject "
            "proposals gets those of all keys. `input`, `ifMatch`, `plan`, `effects` and `result` are empty here: "
            "`proposals.get` returns them.",
            run=_list,
            fields=(*FILTERS, *PAGING),
            verb=LIST,
        ),
        get,
    )


def count_open(gate: Gate) -> int:
    """Return how many proposals are open."""
    now = gate.now()
    return gate.store.read_single(lambda tx: proposals.count_open(tx, now))


def _list(context: Context) -> Outcome:
    given, actor = context.input, context.call.actor
    page, per_page = parse_paging(given)
    filters = {name: given.get(name) for name in ("state", "operation") if given.get(name)}
    if not sees_all(context):
        if given.get("keyId", actor.id) != actor.id:
            raise invalid_id(say("key"), given.get("keyId"), _CODE)
        filters["actor"] = (actor.type, actor.id or 0)
    elif "keyId" in given:
        filters["actor"] = ("key", given.get("keyId"))
    total, found = proposals.read_page(context.tx, filters, per_page, (page - 1) * per_page, now=context.now)
    return Outcome(serialize_page(serialize_proposals(context, found), total, page, per_page))


def _get(context: Context) -> Outcome:
    proposal = find_visible(context, _CODE)
    return Outcome(serialize_content(context, proposal, proposals.find_content(context.tx, proposal.id)))
