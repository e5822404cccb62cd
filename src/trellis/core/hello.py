"""The operation by which a program looks at the service and at its own rights."""

from typing import Any

from trellis import __version__
from trellis.core.fields import Field, Members, Moment, Text, Words
from trellis.core.operation import Access, Act, Operation, Outcome
from trellis.store import keys

_KEY = Members(
    (
        Field("name", Text(), "What it is called."),
        Field("expiresAt", Moment(nullable=True), "When it ends; null is never."),
        Field("operations", Words(), "The operations that it was granted, sorted by name."),
    )
)
_ANSWERS = (
    Field("communityName", Text(), "The community's name.", example="The Lantern"),
    Field(
        "communityUrl",
        Text(2048),
        "The community's address; every record's `url` begins with it.",
        example="https://community.example",
    ),
    Field("version", Text(), "The version of this service.", example=__version__),
    Field(
        "key",
        _KEY,
        "The key that asks.",
        example={"name": "Plugin", "expiresAt": None, "operations": ["forums.create", "forums.list"]},
    ),
)


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
    return Outcome(
        {
            "communityName": world.community_name,
            "communityUrl": world.community_url,
            "version": world.version,
            "key": mine,
        }
    )


HELLO = Operation(
    name="core.hello",
    summary="Say hello",
    doc="The community's name and address, the version of this service, and what the asking key is called, may do, and until when.",
    run=_hello,
    access=Access.ANY_KEY,
    verb="look",
    path="/core/hello",
    answers=_ANSWERS,
)
