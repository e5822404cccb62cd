"""Moving nodes that were dragged together, each to its own place: all of them, or none. A script sends the request."""

from itertools import zip_longest

from starlette.responses import Response

from trellis.admin.conflicts import VERSION
from trellis.admin.forms import read_ids
from trellis.admin.many.plan import BATCH, plan_batch, require_few
from trellis.admin.nodes import node_version, note_on_manager, refuse_conflict, tell_person
from trellis.admin.page import PageRequest
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.sentences import say


async def run(kind: NodeKind, request: PageRequest) -> Response:
    """Move nodes in one batch if nobody has changed them, and return their new versions. If all are there already, nothing is done.

    Each field of the form has a value for every node, separated by commas.
    """
    request.require_fresh_form()
    columns = (request.form.get(name, "").split(",") for name in ("ids", VERSION, "parentId", "before", "after"))
    rows = list(zip_longest(*columns, fillvalue=""))  # none is passed over: without its version, a node has been changed
    require_few(kind, len(rows))
    ids = read_ids(row[0] for row in rows)
    found = (await request.fetch(kind.operation("list"), {"ids": ids, "perPage": len(ids)}))["results"] if ids else ()
    if len(found) < len(rows):
        raise Refused("INVALID_ID", say("Some of these {title} have been deleted. Reload the page.", title=kind.plural))
    by_id = {record["id"]: record for record in found}
    records = [by_id[number] for number in ids]
    bodies = []
    for record, (_, _, parent, before, after) in zip(records, rows, strict=True):
        beside = {name: value for name, value in (("before", before), ("after", after)) if value}
        bodies.append((record, beside | ({"parentId": parent} if kind.tree else {})))
    try:
        plan = await plan_batch(request, kind, "update", bodies, {})
        if plan.count:
            for record, row in zip(records, rows, strict=True):
                if node_version(record) != row[1]:
                    raise await refuse_conflict(kind, request, record)
            done = await request.perform(BATCH, plan.serialize(), check_plan=plan.check)
            records = [one["result"] for one in done.value["results"][: len(rows)]]
    except Refused as refused:
        raise tell_person(refused.facts.get("problem", refused)) from None
    note = next(filter(None, (note_on_manager(kind, record) for record in records)), "")
    return request.json({"versions": [node_version(record) for record in records], "moved": bool(plan.count), "note": note})
