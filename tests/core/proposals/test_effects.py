"""What a call would make of what it reads: approving it does that, or nothing."""

from typing import Any

import pytest

from tests.core.proposals.conftest import Act, MakeAgent
from tests.fixture_types import Run
from tests.memory_meter import MemoryMeter
from trellis.core.actor import Actor
from trellis.core.proposals import effects
from trellis.errors import Refused

OPEN = {"view": "*", "read": "*", "add": "*", "reply": "*"}


@pytest.fixture
def staff(run: Run) -> int:
    """A forum that nobody sees."""
    return int(run("forums.create", name="Staff")["id"])


def list_changes(refused: Refused) -> list[tuple[str, int]]:
    return [(one["operation"], one["id"]) for one in refused.facts["changes"]]


@pytest.mark.parametrize("by", ["inheriting", "copying permissions", "copying"])
def test_a_call_that_would_now_open_more_than_was_shown_is_outdated(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int, by: str
) -> None:
    agent = make_agent("forums.create", "forums.update", "forums.copy")
    other = run("forums.create", name="Other")["id"]
    calls: dict[str, tuple[str, int | None, dict[str, Any]]] = {
        "inheriting": ("forums.create", None, {"name": "Pay", "parentId": staff}),
        "copying permissions": ("forums.update", other, {"copyPermissionsFrom": staff, "name": "Pay"}),
        "copying": ("forums.copy", staff, {"withChildren": True, "name": "Pay"}),
    }
    operation, target, raw = calls[by]
    shown = act(agent, operation, target, **raw).value
    assert shown["effects"][0]["after"]["permissions"]["view"] == []
    run("forums.update", staff, permissions=OPEN)
    refused = act.refuse(ada, "proposals.approve", shown["id"])
    assert refused.message == "PROPOSAL_OUTDATED"
    assert [(one["field"], one["now"]["view"]) for one in refused.facts["differences"]] == [("permissions", "*")]


def test_what_has_changed_is_told_in_the_same_order_by_both_engines(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int
) -> None:
    agent = make_agent("forums.update", "forums.copy")
    changed, copied = (
        act(agent, operation, staff, **raw).value["id"]
        for operation, raw in (("forums.update", {"name": "Pay"}), ("forums.copy", {"name": "Pay"}))
    )
    run("forums.update", staff, description="For those who plan.", externalId="staff", type="qa", minContent=3)
    for number, told in (
        (changed, ["description", "externalId", "minContent", "type"]),
        (copied, ["description", "minContent", "type"]),
    ):
        refused = act.refuse(ada, "proposals.approve", number)
        assert [one["field"] for one in refused.facts["differences"]] == told


@pytest.mark.parametrize("operation", ["forums.put_external", "groups.delete"])
def test_a_node_that_was_deleted_with_its_parent_is_told(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int, operation: str
) -> None:
    group = run("groups.create", name="Payroll")["id"]
    run("forums.create", name="Pay", externalId="pay", parentId=staff, permissions={"view": [group]})
    agent = make_agent("forums.create", "forums.update", "groups.delete")
    about = (None, {"externalId": "pay", "name": "Wages"}) if operation == "forums.put_external" else (group, {})
    number = act(agent, operation, about[0], **about[1]).value["id"]
    run("forums.delete", staff, deleteChildrenOrMove=-1)
    run("forums.create", name="Something else")
    refused = act.refuse(ada, "proposals.approve", number)
    assert (refused.message, list_changes(refused)) == ("PROPOSAL_OUTDATED", [("forums.delete", staff)])
    assert f"event {refused.facts['changes'][0]['event']}, forums.delete of {staff}" in refused.detail


def test_what_is_below_a_node_to_be_copied_counts_too(make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int) -> None:
    below = run("forums.create", name="Pay", parentId=staff)["id"]
    agent = make_agent("forums.copy")
    number = act(agent, "forums.copy", staff, withChildren=True).value["id"]
    run("forums.update", below, permissions=OPEN)
    refused = act.refuse(ada, "proposals.approve", number)
    assert (refused.message, list_changes(refused)) == ("PROPOSAL_OUTDATED", [("forums.update", below)])
    run("forums.update", below, permissions={key: [] for key in OPEN})
    run("forums.create", name="Another", parentId=staff, position=0)
    run("forums.delete", run("forums.list", search="Another")["results"][0]["id"])
    assert act(ada, "proposals.approve", number).value["state"] == "approved"


@pytest.mark.parametrize("by", ["moving", "moving below", "ordering", "naming"])
def test_a_call_that_would_now_put_something_elsewhere_is_outdated(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int, by: str
) -> None:
    public = run("forums.create", name="Public", externalId="public")["id"]
    first, second = (run("forums.create", name=name, parentId=staff)["id"] for name in ("Pay", "Plans"))
    agent = make_agent("forums.create", "forums.copy")
    copied = act(agent, "forums.copy", staff, withChildren=True).value["id"]
    created = act(agent, "forums.create", name="Inside", parentExternalId="public").value["id"]
    changes: dict[str, tuple[int, dict[str, Any], int, list[str]]] = {
        "moving": (staff, {"parentId": public}, copied, ["parentId"]),
        "moving below": (second, {"parentId": first}, copied, []),
        "ordering": (second, {"position": 0}, copied, []),
        "naming": (public, {"externalId": None}, created, ["parentId"]),
    }
    changed, raw, outdated, differences = changes[by]
    run("forums.update", changed, **raw)
    if by == "naming":
        run("forums.update", staff, externalId="public")
    refused = act.refuse(ada, "proposals.approve", outdated)
    assert (refused.message, [one["field"] for one in refused.facts["differences"]]) == ("PROPOSAL_OUTDATED", differences)
    assert act(ada, "proposals.approve", copied + created - outdated).value["state"] == "approved"


@pytest.mark.parametrize("what", ["a new webhook", "a webhook", "children"])
def test_a_batch_that_would_now_do_something_else_with_what_it_refers_to_is_outdated(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, staff: int, what: str
) -> None:
    """Whoever changes what a batch only reads must not change what was shown to whoever approves it."""
    read = run("forums.create", name="Read", type="redirect", redirectUrl="https://one.example/", minContent=staff)["id"]
    webhook = run("webhooks.create", url="https://zero.example/", events=["forum.*"])["id"]
    parent, other = run("forums.create", name="Parent")["id"], run("forums.create", name="Other")["id"]
    run("forums.create", name="Child", parentId=parent)
    steps: dict[str, dict[str, Any]] = {
        "a new webhook": {"operation": "webhooks.create", "body": {"url": {"$ref": "read.redirectUrl"}, "events": ["forum.*"]}},
        "a webhook": {"operation": "webhooks.update", "id": webhook, "body": {"url": {"$ref": "read.redirectUrl"}}},
        "children": {"operation": "forums.delete", "id": parent, "body": {"deleteChildrenOrMove": {"$ref": "read.minContent"}}},
    }
    operations = [{"operation": "forums.get", "id": read, "as": "read"}, steps[what]]
    agent = make_agent(steps[what]["operation"], grants=("forums.get",))
    proposal = act(agent, "core.batch", operations=operations).value["id"]
    run("forums.update", read, redirectUrl="https://two.example/", minContent=other)
    refused = act.refuse(ada, "proposals.approve", proposal)
    differences = [] if what == "children" else [("url", "https://one.example/", "https://two.example/")]
    assert refused.message == "PROPOSAL_OUTDATED"
    assert [(one["field"], one["then"], one["now"]) for one in refused.facts["differences"]] == differences
    run("forums.update", read, redirectUrl="https://one.example/", minContent=staff)
    assert act(ada, "proposals.approve", proposal).value["state"] == "approved"


def test_a_document_that_a_batch_refers_to_and_that_has_another_name_by_now_is_outdated(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run
) -> None:
    document = '{"format": "trellis/1", "name": "one", "forums": [{"externalId": "a", "name": "A"}]}'
    read = run("forums.create", name=document)["id"]
    agent = make_agent("structure.apply", grants=("forums.get", "forums.list", "forums.create", "groups.list"))
    apply = {"operation": "structure.apply", "body": {"document": {"$ref": "read.name"}}}
    operations = [{"operation": "forums.get", "id": read, "as": "read"}, apply]
    proposal = act(agent, "core.batch", operations=operations).value["id"]
    run("forums.update", read, name=document.replace("one", "two"))
    refused = act.refuse(ada, "proposals.approve", proposal)
    assert [(one["field"], one["now"]) for one in refused.facts["differences"]] == [("managedBy", "two")]
    run("forums.update", read, name=document)
    assert act(ada, "proposals.approve", proposal).value["state"] == "approved"


@pytest.mark.slow
def test_a_call_with_many_events_keeps_little_of_each_and_is_still_compared(
    make_agent: MakeAgent, ada: Actor, act: Act, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is not shown, only versions are kept: they tell whether a record has changed since."""
    assert effects.SHOWN == 50
    monkeypatch.setattr(effects, "SHOWN", 5)
    agent = make_agent("forums.update")
    top = run("forums.create", name="Top")["id"]
    bodies = [{"name": f"F{n}", "parentId": top, "description": "x" * 50_000} for n in range(60)]
    steps = [{"operation": "forums.create", "body": body} for body in bodies]
    ids = [one["result"]["id"] for one in run("core.batch", operations=steps)["results"]]
    meter, collect = MemoryMeter(of_write=True), effects.collect_effects

    def collect_measured(*given: Any) -> effects.Effects:
        with meter:
            return collect(*given)

    with monkeypatch.context() as patch:
        patch.setattr(effects, "collect_effects", collect_measured)
        made = act(agent, "forums.order", parentId=top, ids=ids[::-1]).value
    assert (made["counts"]["moved"], len(made["effects"]), made["about"]) == (59, 5, "Top > F59")
    assert 2**20 < meter.peak < 8 * 2**20
    assert act(ada, "proposals.approve", made["id"]).value["state"] == "approved"
    back = act(agent, "forums.order", parentId=top, ids=ids).value
    run("forums.update", ids[-2], description="Another")  # the last but one that it would move
    assert act.refuse(ada, "proposals.approve", back["id"]).message == "PROPOSAL_OUTDATED"
