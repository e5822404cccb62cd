"""Ids, groups and permissions: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest

from trellis.core.fields import MAX_ID, ChildrenFate, Groups, Ids, Invalid, NodeId, ParentId, Permissions, Type

OPTIONS = Permissions({"view": "See it.", "add": "Write in it."})


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (NodeId(), "7", 7),
        (NodeId(), MAX_ID, MAX_ID),
        (NodeId(nullable=True), "", None),
        (ParentId(), 7, 7),
        *((ParentId(), raw, None) for raw in (None, "", 0, "0", -1, "-1", "root", "null")),
        (ChildrenFate(), "-1", -1),
        (ChildrenFate(), 7, 7),
        (Ids(), "3,1, 3", (1, 3)),
        (Ids(), [3, "1"], (1, 3)),
        (Ids(), "[3,1]", (1, 3)),
        (Ids(), 3, (3,)),
        (Ids(), "", ()),
        (Groups(), "*", "*"),
        (Groups(), [4, 3, 3], (3, 4)),
        (Groups(), "3,4", (3, 4)),
        (Groups(), [], ()),
        (OPTIONS, {"view": "*", "add": [3]}, {"view": "*", "add": (3,)}),
        (OPTIONS, '{"add": "3,4"}', {"add": (3, 4)}),
        (OPTIONS, {}, {}),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (NodeId(), 0, "must be an id (a whole number from 1), not 0."),
        (NodeId(), MAX_ID + 1, "must be an id"),
        (NodeId(), None, "must be an id"),
        (ParentId(), -2, "must be a parent's id, or null for the top level, not -2."),
        (ParentId(), "top", "must be a parent's id"),
        (ChildrenFate(), 0, "must be -1 (delete the children) or the id of their new parent, not 0."),
        (ChildrenFate(), None, "must be -1 (delete the children)"),
        (Ids(2), [1, 2, 3], "must be at most 2 ids, such as 1,2,3, not [1, 2, 3]."),
        (Ids(), [1, 0], "must be an id"),
        (Ids(), {"a": 1}, "must be at most 1000 ids"),
        (Groups(), "all", "must be \"*\" (every group) or a list of group ids, not 'all'."),
        (OPTIONS, [], 'must be an object such as {"view": "*", "add": [3]}, not [].'),
        (OPTIONS, "{", "must be an object"),
        (OPTIONS, {"viwe": "*"}, "has no option 'viwe'; the options are view, add."),
        (OPTIONS, {"add": 0}, "'add' must be \"*\" (every group) or a list of group ids, not 0."),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail


@pytest.mark.parametrize(
    ("type_", "raw", "message"),
    [
        (ParentId(), -2, "INVALID_PARENT"),
        (ChildrenFate(), 0, "INVALID_TARGET"),
        (OPTIONS, {"viwe": "*"}, "UNKNOWN_PARAMETER"),
    ],
)
def test_a_value_is_refused_under_the_message_that_fits(type_: Type, raw: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert refused.value.message == message


def test_groups_by_external_id_are_not_compared_with_one_another() -> None:
    class Named(dict[str, str]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Named.compared += 1
            return super().__eq__(other)

        __hash__ = None

    sent = [Named(externalId=f"g{number}") for number in range(500)]
    assert len(Groups(external=True).parse([3, *sent])) == 501
    assert Named.compared < len(sent)
