"""Which groups a document of a limited key may name, and tells of: those within the bound of `groups.list`."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.actor import Actor
from trellis.core.gate import Result
from trellis.errors import Refused

MakeActor = Callable[..., Actor]
Act = Callable[..., Result]
Forums = dict[str, int]

INNER = {"externalId": "inner", "name": "Inner"}


def document(**entry: Any) -> dict[str, Any]:
    return {"format": "trellis/1", "name": "garden", "under": "part", "forums": [INNER | entry]}


@pytest.fixture
def groups(run: Run) -> dict[str, int]:
    """Two groups: Mine, to which `bounded` is limited, and Merger."""
    return {name: run("groups.create", name=name, externalId=name.lower())["id"] for name in ("Mine", "Merger")}


@pytest.fixture
def bounded(actor: MakeActor, forums: Forums, groups: dict[str, int]) -> Actor:
    """A key that may apply documents within Part that name Mine."""
    part, mine = [f"forums:{forums['Part']}"], [f"groups:{groups['Mine']}"]
    bounds = {
        "forums__list": {"under": part},
        "forums__update": {"under": part},
        "groups__list": {"under": mine},
        "structure__plan": {"under": part + mine},
        "structure__apply": {"under": part + mine},
    }
    return actor([name.replace("__", ".") for name in bounds], **bounds)


def test_a_part_can_be_exported_whose_permissions_name_groups(actor: MakeActor, act: Act, run: Run, forums: Forums) -> None:
    run("forums.update", forums["Inner"], permissions={"view": [3]})
    part = {"under": [f"forums:{forums['Part']}"]}
    caller = actor(["forums.list", "groups.list", "structure.export"], forums__list=part, structure__export=part)
    written = act(caller, "structure.export", sections=["forums"]).value
    assert written["forums"][0]["permissions"]["view"] == ["members"]


@pytest.mark.parametrize("operation", ["structure.plan", "structure.apply"])
def test_a_document_names_no_group_outside(
    refused: Callable[..., Refused], act: Act, bounded: Actor, groups: dict[str, int], operation: str
) -> None:
    told = [
        refused(bounded, operation, document=document(permissions={"view": [group]})).detail.replace(group, "X")
        for group in ("merger", "nobody")
    ]
    assert told[0] == told[1]
    done = act(bounded, operation, document=document(permissions={"view": ["mine"]})).value
    assert done["counts"]["update"] == 1


def test_a_plan_tells_nothing_of_a_group_outside(act: Act, run: Run, bounded: Actor, groups: dict[str, int]) -> None:
    plan = act(bounded, "structure.plan", document=document(name="Core")).value["plan"]
    run("groups.update", groups["Merger"], name="Takeover")
    assert act(bounded, "structure.apply", document=document(name="Core"), plan=plan).value["counts"]["update"] == 1


def test_a_plan_is_outdated_by_a_group_inside(
    act: Act, run: Run, refused: Callable[..., Refused], bounded: Actor, groups: dict[str, int]
) -> None:
    plan = act(bounded, "structure.plan", document=document(name="Core")).value["plan"]
    run("groups.update", groups["Mine"], name="Ours")
    refusal = refused(bounded, "structure.apply", document=document(name="Core"), plan=plan)
    assert [one["id"] for one in refusal.facts["changes"]] == [groups["Mine"]]


@pytest.mark.parametrize("name", ["forums.create", "forums.update"])
def test_permissions_name_no_group_outside_by_its_external_id(
    refused: Callable[..., Refused], act: Act, actor: MakeActor, groups: dict[str, int], forums: Forums, name: str
) -> None:
    caller = actor(["forums.create", "forums.update", "groups.list"], groups__list={"under": [f"groups:{groups['Mine']}"]})
    target = forums["Inner"] if name == "forums.update" else None

    def name_group(group: str) -> dict[str, Any]:
        return {"name": "Inner", "permissions": {"view": [{"externalId": group}]}}

    told = [refused(caller, name, target, **name_group(group)).detail.replace(group, "X") for group in ("merger", "nobody")]
    assert told[0] == told[1]
    assert act(caller, name, target, **name_group("mine")).value["permissions"]["view"] == [groups["Mine"]]
