"""The operation by which a program looks at the service and at its own rights."""

from typing import Any

from trellis.core.operation import Access, Act, Operation, Outcome
from trellis.store import keys


def _hello(act: Act) -> Outcome:
    act.given.demand()
    key = keys.find(act.tx, act.call.actor.id) if act.call.actor.type == "key" and act.call.actor.id else None
    grants = sorted(act.world.grantable if act.call.actor.grants is None else act.call.actor.grants)
    mine: dict[str, Any] = {
        "name": key.name if key else act.call.actor.name,
        "expiresAt": key.expires_at if key else None,
        "operations": grants,
    }
    world = act.world
    return Outcome({"communityName": world.community_name, "communityUrl": world.community_url, "version": world.version, "key": mine})


HELLO = Operation(
    name="core.hello",
    summary="Say hello",
    doc="The community's name and address, the version of this service, and what the key that asks is called, may do, and until when.",
    run=_hello,
    access=Access.ANY_KEY,
)
