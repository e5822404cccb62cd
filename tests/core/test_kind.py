"""A kind's declaration, and what it makes of it: what its nodes take, answer and refuse."""

from trellis.core.fields import Boolean, Field, Groups, Html, Integer, Password
from trellis.core.kind import Derived, NodeKind
from trellis.core.verbs import STANDARD

SHELVES = NodeKind(
    name="shelves",
    singular="shelf",
    title="Shelves",
    application="Library",
    path="/library/shelves",
    doc="Where books stand.",
    code="Z999",
    fields=(
        Field("label", Html(), "What stands on it.", default=""),
        Field("lock", Password(), "What opens it.", write_only=True),
        Field("readers", Groups(), "Who may take a book.", default="*"),
        Field("oak", Boolean(), "Whether it is of oak.", default=True, read_only=True),
        Field("boards", Integer(1), "How many boards it has.", default=5, listed=True),
    ),
    derived=(Derived("locked", Boolean(), "Whether it is locked.", lambda _, fields: bool(fields.get("lock"))),),
    options={"view": "See it.", "borrow": "Take a book."},
    codes={"delete": "1S359/1"},
)
TREE = NodeKind(**{**SHELVES.__dict__, "tree": True})
PLAIN = NodeKind("tags", "tag", "Tags", "Core", "/core/tags", "Words.", "T998", ordered=False)


def names(fields: tuple[Field, ...]) -> list[str]:
    return [field.name for field in fields]


def test_a_record_has_its_members_in_their_order() -> None:
    assert names(SHELVES.response_fields) == [
        *("id", "name", "url", "externalId", "managedBy", "position"),
        *("label", "readers", "oak", "boards"),
        "locked",
        "permissions",
        *("createdAt", "updatedAt"),
    ]


def test_a_tree_tells_the_parent_and_the_path_too() -> None:
    assert set(names(TREE.response_fields)) - set(names(SHELVES.response_fields)) == {"parentId", "path"}


def test_what_is_not_ordered_has_no_place() -> None:
    assert names(PLAIN.response_fields) == ["id", "name", "url", "externalId", "managedBy", "createdAt", "updatedAt"]
    assert PLAIN.placement == ()
    assert PLAIN.permissions_field == ()


def test_everything_that_is_answered_can_be_sent_back() -> None:
    for kind in (SHELVES, TREE, PLAIN):
        assert set(names(kind.response_fields)) <= set(names(kind.accepted))


def test_what_is_written_only_is_taken_and_never_answered() -> None:
    assert names(SHELVES.secrets) == ["lock"]
    assert "lock" in names(SHELVES.accepted)
    assert "lock" not in names(SHELVES.response_fields)


def test_what_is_read_only_is_taken_and_passed_over() -> None:
    passed_over = {field.name for field in SHELVES.accepted if field.read_only}
    assert passed_over == {"id", "url", "managedBy", "oak", "locked", "createdAt", "updatedAt"}


def test_a_name_is_needed_and_may_be_called_title() -> None:
    assert SHELVES.name_field.required
    assert SHELVES.name_field.also == ("title",)


def test_the_fields_that_name_groups_are_known() -> None:
    assert names(SHELVES.group_fields) == ["readers"]


def test_each_verb_is_an_operation_with_a_code_for_an_unknown_id() -> None:
    assert [SHELVES.operation(verb.name) for verb in STANDARD] == [f"shelves.{verb.name}" for verb in STANDARD]
    codes = {verb.name: SHELVES.missing_code(verb) for verb in STANDARD}
    assert codes == {"list": "1Z999/7", "get": "1Z999/1", "create": "1Z999/8", "update": "1Z999/5", "delete": "1S359/1"}


def test_a_missing_name_has_the_kinds_own_code_and_other_reasons_theirs() -> None:
    assert SHELVES.code_of("NO_TITLE") == "1Z999/2"
    assert SHELVES.code_of("INVALID_VALUE") == ""
