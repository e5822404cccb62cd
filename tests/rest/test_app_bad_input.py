"""Values that no field allows, however they are sent: refused as the contract says, nothing changed, the next request served."""

from typing import Any, Final

from tests.api_client import ApiClient, read_field_errors
from tests.community import Community
from tests.database_state import DatabaseState
from trellis.core.verbs import CREATE
from trellis.kinds import KINDS

MADE_OVER_REST: Final = tuple(kind for kind in KINDS if kind.serves(CREATE))
HUGE: Final = int("9" * 400)
WEIRD: Final[tuple[Any, ...]] = (
    "\x00",
    "a\x00b",
    "\x1b[31m",
    "\x9f",
    HUGE,
    -HUGE,
    -1,
    -(2**63) - 1,
    2**63,
    2**64,
    1e300,
    -0.5,
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    [None],
    {"a": {"b": {"c": {}}}},
    "x" * 200_000,
)
MEANT: Final[tuple[tuple[str, Any], ...]] = (("parentId", -1), ("permissions", {}))  # the top level; no option changed


def test_no_field_takes_what_is_not_meant_for_it(api: ApiClient, community: Community, database: DatabaseState) -> None:
    """Every writable field of every kind that REST creates, each with every weird value."""
    numbers = {"forums": community.help, "calendars": community.meetups, "categories": community.tools}
    visited = 0
    with database.unchanged():
        for kind in MADE_OVER_REST:
            for field in (field for field in kind.accepted if not field.read_only):
                for value in WEIRD:
                    for path in (kind.path, f"{kind.path}/{numbers[kind.name]}"):
                        answer = api.post(path, {"name": "Odd", field.name: value, "dryRun": True})
                        visited += 1
                        if (field.name, value) in MEANT:
                            assert answer.status_code == 200
                        else:
                            assert {name.partition(".")[0] for name in read_field_errors(answer)} == {field.name}, (
                                path,
                                field.name,
                                value,
                            )
                        assert len(answer.content) < 3000, "an answer is short, whatever was sent"
    assert visited > 2 * 3 * 10 * len(WEIRD)


def test_no_name_of_a_parameter_or_option_does_harm(api: ApiClient, community: Community, database: DatabaseState) -> None:
    names = [
        "\x00",
        "__proto__",
        "constructor",
        "",
        " ",
        "id[",
        "x" * 100_000,
        "\u202e",
        "permissions.view",
        "a'b\"c<d>",
        "é\U0001f30d",
    ]
    with database.unchanged():
        for name in names:
            for body in ({name: 1}, {"permissions": {name: "*"}}):
                assert set(read_field_errors(api.post(f"/forums/forums/{community.news}", body)).values()) == {
                    "UNKNOWN_PARAMETER"
                }, name[:30]
        answer = api.post(f"/forums/forums/{community.news}", dict.fromkeys(map(str, range(5000)), 1))
        assert len(read_field_errors(answer)) == 5000, "every field at fault is told"
    assert api.post("/forums/forums", {"name": "Next"}).status_code == 201
