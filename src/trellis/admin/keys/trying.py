"""A key for trying operations in the reference: it has few grants, lasts an hour at most, and is made for whoever is signed in.

The reference's script requests such a key and keeps it only in the page. Without the script, or if the password has to be entered
again first, the form here creates the key. It is granted nothing that the administrator may not do in person.
"""

from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.keys.grants import Box, GrantGrid
from trellis.admin.keys.index import show_secret
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import find_status
from trellis.core.fields import quote
from trellis.core.keys import FOR_TRYING
from trellis.core.operation import is_allowed
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say

_HERE: Final = "/keys/try"
_SECTION: Final = "keys"
_LASTS: Final = "1h"
_OPERATION: Final = "operation"  # in the address: the operation to try


async def offer(request: PageRequest) -> Response:
    """Show the form, or send the reference's script the tokens that its next request has to carry."""
    if request.wants_json:
        return request.json({"csrf": request.csrf, "submission": request.submission_token()})
    wanted = request.query.get(_OPERATION, "")
    boxes = _find_boxes(request, GrantGrid(request.catalogue), wanted)
    return _show_form(request, boxes, {wanted})


async def create(request: PageRequest) -> Response:
    """Create the key and show it, once."""
    grid, names = GrantGrid(request.catalogue), list(dict.fromkeys(filter(None, request.form.all("grants"))))
    try:
        created = await request.perform_once("keys.create", _describe(request, grid, names))
    except Refused as refused:
        if request.wants_json or find_status(refused) not in {400, 409}:
            raise
        return _show_form(request, _find_boxes(request, grid, ""), set(names), refused)
    if request.wants_json:
        return request.json({name: created.value.get(name) for name in ("id", "name", "key", "expiresAt")})
    return show_secret(request, created.value, "created")


def _describe(request: PageRequest, grid: GrantGrid, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the key. Raises Refused for an operation that cannot be granted or the administrator may not run."""
    for name in names:
        if name not in grid.names:
            detail = say("grants: there is no operation {name} that can be granted.", name=quote(name))
            raise refuse_fault("grants", "UNKNOWN_OPERATION", detail)
        request.gate.authorise(name, request.actor)
    title = f"Try it: {names[0]}" if names else "Try it: what needs no grant"  # the key's name, the same for everybody
    title += f" and {len(names) - 1} more" if len(names) > 1 else ""
    return {"name": title, "owner": request.signed_in.name, "note": FOR_TRYING, "grants": list(names), "expires": _LASTS}


def _find_boxes(request: PageRequest, grid: GrantGrid, wanted: str) -> list[Box]:
    """Return the boxes of the operations that the administrator may run: those of the wanted operation's resource, or else all."""
    resource = wanted.partition(".")[0]
    mine = [box for box in grid.boxes if is_allowed(request.catalogue.find(box.name), request.actor, None)]
    return [box for box in mine if box.name.partition(".")[0] == resource] or mine


def _show_form(request: PageRequest, boxes: list[Box], ticked: set[str], refused: Refused | None = None) -> Response:
    return request.page(
        "keys/try.html",
        status=find_status(refused) if refused else 200,
        title=say("A key for trying out the API"),
        boxes=boxes,
        ticked=ticked,
        refused=refused,
    )


PAGES: Final = (
    Page("GET", _HERE, offer, _SECTION, needs=("keys.create",), confirms=True),
    Page("POST", _HERE, create, _SECTION, needs=("keys.create",), confirms=True),
)
