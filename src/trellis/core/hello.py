"""The operation with which a program inspects the service and its own rights."""

from trellis import __version__
from trellis.core.dialect import TRELLIS
from trellis.core.fields import Field, Integer, ObjectOf, Text, TextList, Timestamp
from trellis.core.operation import ANY_KEY, Context, Operation, Outcome
from trellis.core.verbs import LOOK

_KEY = ObjectOf(
    (
        Field("name", Text(), "Its name."),
        Field("dialect", Text(), "The dialect of the key's requests and responses."),
        Field("expiresAt", Timestamp(nullable=True), "When it expires; null means never."),
        Field("operations", TextList(), "The operations that it has been granted, sorted by name."),
        Field("bounds", ObjectOf(), "The bounds of those operations that have any, by operation."),
        Field(
            "perDay",
            Integer(0, 1_000_000_000, nullable=True),
            "How many times a day (UTC) all its grants together may be used; null means no limit.",
        ),
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
        "The key that sent the request.",
        example={
            "name": "Plugin",
            "dialect": "trellis",
            "expiresAt": None,
            "operations": ["forums.create", "forums.list"],
            "bounds": {},
            "perDay": None,
        },
    ),
)


def _hello(context: Context) -> Outcome:
    actor, environment = context.call.actor, context.environment
    key = actor.key
    return Outcome(
        {
            "communityName": environment.community_name,
            "communityUrl": environment.community_url,
            "version": environment.version,
            "key": {
                "name": actor.name,
                "dialect": key.dialect if key else TRELLIS,
                "expiresAt": key.expires_at if key else None,
                "operations": sorted(environment.grantable if actor.grants is None else actor.grants),
                "bounds": key.bounds if key else {},
                "perDay": key.per_day if key else None,
            },
        }
    )


HELLO = Operation(
    name="core.hello",
    summary="Say hello",
    doc="Returns the community's name and address, the version of this service, and the name, expiry and grants of the key.",
    brief="Who this is, and what the key is granted",
    run=_hello,
    access=ANY_KEY,
    verb=LOOK,
    path="/core/hello",
    response_fields=_ANSWERS,
)
