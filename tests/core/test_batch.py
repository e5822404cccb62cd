"""Batches: many operations in one transaction, each with its own grant and event, all of them or none."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Run, RunForEvent
from trellis.core.actor import Actor
from trellis.core.events import refuse_overdue
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords import Plain
from trellis.core.version import record_version
from trellis.errors import Refused

NEWS = {"operation": "forums.create", "as": "news", "body": {"name": "News"}}
KEY = Actor(
    "key",
    1,
    "Mirror",
    frozenset({"forums.create", "forums.update", "forums.list", "forums.restore", "groups.list", "structure.apply"}),
)
BELOW = {"operation": "forums.create", "as": "below", "body": {"name": "Below", "parentId": {"$ref": "news.id"}}}


def refuse(run: Run, *operations: Any, **more: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        run("core.batch", operations=list(operations), **more)
    return refused.value


def test_operations_are_carried_out_in_their_order_and_leave_an_event_each(run: Run, database: DatabaseState) -> None:
    with database.new_events() as events:
        found = run(
            "core.batch",
            operations=[
                NEWS,
                BELOW,
                {"operation": "forums.update", "id": {"$ref": "news.id"}, "body": {"name": "Bulletin"}},
                {"operation": "forums.get", "id": {"$ref": "below.id"}, "as": "read"},
                {"operation": "calendars.create", "body": {"name": {"$ref": "read.path"}}},
            ],
        )["results"]
    assert [one["operation"] for one in events()] == ["forums.create", "forums.create", "forums.update", "calendars.create"]
    assert [one["event"] for one in found] == [*(one["seq"] for one in events()[:3]), None, events()[3]["seq"]]
    assert found[1]["result"]["parentId"] == found[0]["result"]["id"]
    assert found[3]["result"]["path"] == found[4]["result"]["name"] == "Bulletin > Below"


def test_what_takes_too_long_is_refused_as_a_whole(gate: Gate, run: Run, database: DatabaseState) -> None:
    made = gate.run(Call("core.batch", KEY, {"operations": [NEWS]}))
    gate.calls.environment = replace(gate.environment, job_timeout=0)
    document = {
        "format": "trellis/1",
        "name": "site",
        "forums": [{"externalId": "a", "name": "A"}, {"externalId": "b", "name": "B"}],
    }
    for call in (
        Call("core.batch", KEY, {"operations": [NEWS, BELOW]}),
        Call("structure.apply", KEY, {"document": document}),
        Call("changesets.restore", KEY, {"skipConflicts": True}, made.change_set),
    ):
        with database.unchanged(), pytest.raises(Refused) as refused:
            gate.run(call)
        assert refused.value.message == "TOO_LONG"
    assert run("core.batch", operations=[NEWS, BELOW])["results"]  # at the terminal


@pytest.mark.parametrize(("limit", "told"), [(1, "after 1 second,"), (20, "after 20 seconds,")])
def test_a_batch_that_took_too_long_is_told_for_how_long_it_could_go_on(limit: int, told: str) -> None:
    assert told in refuse_overdue("core.batch", limit).detail


def test_one_operation_that_touches_very_many_nodes_ends_in_time_too(
    gate: Gate, run: Run, community: Community, database: DatabaseState, do: RunForEvent
) -> None:
    grants = ("forums.copy", "forums.delete", "forums.restore", "groups.delete", "groups.list")
    gardener = Actor("key", 1, "Gardener", frozenset(grants))
    top = run("forums.create", name="Top", permissions={"view": [community.patrons]})["id"]
    for _ in range(7):
        run("forums.copy", top, withChildren=True, parentId=top)
    copied = do("forums.copy", top, withChildren=True)
    other = do("forums.copy", top, withChildren=True)
    deleted = do("forums.delete", run("events.list", after=other - 1)["results"][0]["resourceId"], deleteChildrenOrMove=-1)
    gate.calls.environment = replace(gate.environment, job_timeout=0)
    for call in (
        Call("forums.copy", gardener, {"withChildren": True}, top),
        Call("forums.delete", gardener, {"deleteChildrenOrMove": -1}, top),
        Call("forums.restore", gardener, {}, copied),
        Call("forums.restore", gardener, {}, deleted),
        Call("groups.delete", gardener, {}, community.patrons),
        Call("core.batch", gardener, {"operations": [{"operation": "forums.copy", "id": top, "body": {"withChildren": True}}]}),
    ):
        with database.unchanged(), pytest.raises(Refused) as refused:
            gate.run(call)
        assert refused.value.message == "TOO_LONG"
    assert run("forums.copy", top, withChildren=True)  # at the terminal
    assert run("forums.delete", top, deleteChildrenOrMove=-1) is None


def test_one_refusal_undoes_all(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        refused = refuse(run, NEWS, BELOW, {"operation": "forums.create", "body": {}})
    assert (refused.message, refused.facts["index"], refused.facts["operation"]) == ("BATCH_REFUSED", 2, "forums.create")
    assert refused.facts["problem"].message == "NO_TITLE"


def test_many_of_which_the_last_is_refused_leave_nothing(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        assert refuse(run, *calendars(150), {"operation": "calendars.delete", "id": 999_999}).facts["index"] == 150


@pytest.mark.slow
def test_a_thousand_are_run(run: Run) -> None:
    assert len(run("core.batch", operations=[*calendars(999), NEWS])["results"]) == 1000
    assert run("calendars.list")["totalResults"] == 999


def calendars(count: int) -> list[dict[str, Any]]:
    return [{"operation": "calendars.create", "body": {"name": f"Calendar {number}"}} for number in range(count)]


def test_a_batch_can_be_run_dry(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        found = run("core.batch", operations=[NEWS, BELOW], dryRun=True)
    assert found["dryRun"] is True
    assert [one["event"] for one in found["results"]] == [None, None]
    assert found["results"][1]["result"]["path"] == "News > Below"


@pytest.mark.parametrize("granted", [{"forums.create"}, {"forums.create", "forums.delete"}, set()])
def test_each_needs_its_own_grant(gate: Gate, granted: set[str], database: DatabaseState) -> None:
    key = Actor("key", 7, "Plugin", frozenset(granted))
    wanted = [NEWS, {"operation": "forums.update", "id": {"$ref": "news.id"}, "body": {"name": "Bulletin"}}]
    with database.unchanged(), pytest.raises(Refused) as refused:
        gate.run(Call("core.batch", key, {"operations": wanted}))
    missing = "forums.update" if granted else "forums.create"
    assert refused.value.facts["problem"].facts == {"missingOperation": missing}


def test_what_is_not_for_batches_is_refused(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        for name in ("keys.create", "core.batch", "forums.list", "events.list", "admins.list", "nothing.at_all", "forums.level"):
            assert refuse(run, NEWS, {"operation": name}).facts["problem"].message == "UNKNOWN_OPERATION", name


@pytest.mark.parametrize(
    ("name", "hint"),
    [("forums.craete", " Did you mean forums.create?"), ("forum.update", " Did you mean forums.update?"), ("forums.list", "")],
)
def test_a_misspelt_operation_is_refused_with_the_nearest_one(run: Run, name: str, hint: str) -> None:
    detail = refuse(run, {"operation": name}).facts["problem"].detail
    assert detail.removesuffix(hint).endswith("or that get one record.")


def test_a_reference_that_leads_nowhere_is_refused(run: Run, database: DatabaseState) -> None:
    texts = ("nowhere", "news", "news.nothing", "news.id.more", "", ".", "below.id", "news.permissions.view.0")
    references: tuple[object, ...] = (*texts, 5, None, [])
    with database.unchanged():
        for reference in references:
            refused = refuse(run, NEWS, {"operation": "forums.get", "id": {"$ref": reference}}, BELOW)
            assert (refused.facts["index"], refused.facts["problem"].message) == (1, "INVALID_VALUE"), reference


def test_a_precondition_holds_in_a_batch(run: Run, database: DatabaseState) -> None:
    made = run("forums.create", name="News")
    with database.unchanged():
        refused = refuse(run, {"operation": "forums.update", "id": made["id"], "ifMatch": '"0"', "body": {"name": "Olds"}})
    assert refused.facts["problem"].message == "PRECONDITION_FAILED"


@pytest.mark.parametrize(
    "step",
    [
        {"operation": "forums.create", "body": {"name": "N"}},
        {"operation": "forums.order", "body": {"ids": [1]}},
        {"operation": "forums.get", "id": {"$ref": "news.id"}},
    ],
)
@pytest.mark.parametrize("tag", ['"0"', "*"])
def test_a_precondition_of_nothing_is_refused(run: Run, step: Any, tag: str, database: DatabaseState) -> None:
    """Passed over, it would let pass what its sender meant to stop."""
    with database.unchanged():
        refused = refuse(run, NEWS, step | {"ifMatch": tag})
    (fault,) = refused.facts["problem"].faults
    assert (refused.facts["index"], fault.field, fault.message) == (1, "ifMatch", "INVALID_VALUE")


def test_a_precondition_that_is_no_tag_is_refused(run: Run, database: DatabaseState) -> None:
    """An empty tag is what a program sends that has read none: it was to stop the write."""
    step = {"operation": "forums.update", "id": run("forums.create", name="News")["id"], "body": {"name": "Olds"}}
    for tag in ('""', '"', '"*"', '"0", "1"', "", None, 0):
        with database.unchanged(), pytest.raises(Refused) as refused:
            run("core.batch", operations=[step | {"ifMatch": tag}])
        (fault,) = refused.value.faults
        assert (fault.field, fault.message) == ("operations", "INVALID_VALUE"), tag
        assert fault.detail.startswith("operations [0]: ifMatch must "), tag


@pytest.mark.parametrize(
    ("member", "detail"),
    [
        ({"as": None}, "as must be text, not null."),
        ({"operation": None}, "operation must be text, not null."),
        ({"id": "x"}, "id must be an id (a whole number from 1), not 'x'."),
    ],
)
def test_a_member_that_is_wrong_is_named(run: Run, member: dict[str, Any], detail: str) -> None:
    with pytest.raises(Refused) as refused:
        run("core.batch", operations=[NEWS, NEWS | {"as": "other"} | member])
    assert refused.value.detail == f"operations [1]: {detail}"


@pytest.mark.parametrize("tag", ['"0"', "*"])
def test_a_precondition_of_an_external_id_that_there_is_not_fails(run: Run, tag: str, database: DatabaseState) -> None:
    put = {"operation": "forums.put_external", "body": {"externalId": "n", "name": "N"}}
    with database.unchanged():
        assert refuse(run, NEWS, put | {"ifMatch": tag}).facts["problem"].message == "PRECONDITION_FAILED"
    run("core.batch", operations=[put])
    version = record_version(run("forums.get_external", externalId="n"))
    changed = put | {"ifMatch": f'"{version}"', "body": {"externalId": "n", "name": "M"}}
    assert run("core.batch", operations=[changed])["results"][0]["result"]["name"] == "M"
    with database.unchanged():
        assert refuse(run, changed).facts["problem"].message == "PRECONDITION_FAILED"


def test_what_is_no_batch_is_refused(run: Run, database: DatabaseState) -> None:
    tried: tuple[object, ...] = (
        None,
        [],
        {},
        "forums.create",
        [5],
        [{}],
        [{"operation": ""}],
        [{"operation": 5}],
        [{"operation": "forums.create", "path": "x"}],
        [{"operation": "forums.get", "id": 0}],
        [{"operation": "forums.get", "id": {"$ref": "a", "b": 1}}],
        [{"operation": "forums.create", "body": []}],
        [{"operation": "forums.create", "body": {"name": "N", "dryRun": True}}],
        [NEWS] * 1001,
        [NEWS, NEWS],
        [NEWS | {"as": "a.b"}],
    )
    with database.unchanged():
        for wrong in tried:
            with pytest.raises(Refused, match="INVALID_VALUE"):
                run("core.batch", operations=wrong)


def test_undo_takes_back_each_event_of_a_batch(run: Run) -> None:
    made = run("forums.create", name="News")
    changes = [{"operation": "forums.update", "id": made["id"], "body": {"name": name}} for name in ("One", "Two")]
    events = [one["event"] for one in run("core.batch", operations=changes)["results"]]
    for event in reversed(events):
        run("events.restore", event)
    assert run("forums.get", made["id"])["name"] == "News"


_WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"operation": "forums.update", "body": {"name": "N"}}, "MISSING_VALUE"),
    ({"operation": "forums.get", "id": {"$ref": "news.parentId"}}, "INVALID_VALUE"),
    ({"operation": "forums.create", "id": 5, "body": {"name": "N"}}, "INVALID_VALUE"),
    ({"operation": "forums.put_external", "id": 1, "body": {"name": "N", "externalId": "n"}}, "INVALID_VALUE"),
    ({"operation": "forums.put_external", "body": {"name": "N"}}, "MISSING_VALUE"),
    ({"operation": "forums.put_external", "body": {"name": "N", "externalId": None}}, "INVALID_VALUE"),
    ({"operation": "forums.get_external"}, "MISSING_VALUE"),
    ({"operation": "forums.delete_external", "body": {}}, "MISSING_VALUE"),
    ({"operation": "forums.order", "body": {}}, "MISSING_VALUE"),
    ({"operation": "forums.create", "body": {"$ref": "news.id"}}, "INVALID_VALUE"),
    ({"operation": "forums.create", "body": {"$ref": "news.name"}}, "INVALID_VALUE"),
)


def test_an_operation_is_told_what_it_is_about(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        for wrong, message in _WRONG:
            refused = refuse(run, NEWS, wrong)
            assert (refused.facts["index"], refused.facts["problem"].message) == (1, message), wrong


def test_copies_of_copies_end(run: Run, monkeypatch: pytest.MonkeyPatch, database: DatabaseState) -> None:
    """Each copy of a forum into itself doubles what is in it."""
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 10)
    top = run("forums.create", name="Top")["id"]
    double = {"operation": "forums.copy", "id": top, "body": {"withChildren": True, "parentId": top}}
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("core.batch", operations=[double] * 1000)
    assert refused.value.message == "BATCH_TOO_LARGE"
    assert "The first 4 operations" in refused.value.detail
    assert len(run("core.batch", operations=[double] * 3)["results"]) == 3


def test_the_last_and_the_only_operation_count_too(run: Run, monkeypatch: pytest.MonkeyPatch, database: DatabaseState) -> None:
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 2)
    monkeypatch.setattr("trellis.core.batch.MOST_BYTES", 5_000)
    top = run("forums.create", name="Top", description="x" * 2_000)["id"]
    for name in "AB":
        run("forums.create", name=name, parentId=top)
    copy = {"operation": "forums.copy", "id": top, "body": {"withChildren": True}}
    read = {"operation": "forums.get", "id": top}
    for operations, told in (
        ([copy], "The first operation changes more than 2 records"),
        ([NEWS, copy], "The first 2 operations change"),
        ([read, read, read], "The first 3 operations change"),
    ):
        with database.unchanged():
            refused = refuse(run, *operations)
        assert (refused.message, told in refused.detail) == ("BATCH_TOO_LARGE", True)
    assert len(run("core.batch", operations=[NEWS, NEWS | {"as": "more"}, read])["results"]) == 3  # reading changes nothing
    put = {"operation": "forums.put_external", "body": {"externalId": "new", "name": "New"}}
    assert "The first 3 operations change" in refuse(run, NEWS, NEWS | {"as": "more"}, put).detail


def test_orders_within_a_batch_are_counted_by_what_they_move(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 10)
    ids = [run("calendars.create", name="C")["id"] for _ in range(6)]
    orders = [{"operation": "calendars.order", "body": {"ids": which}} for which in (ids[::-1], ids, ids[::-1], ids)]
    with pytest.raises(Refused, match="BATCH_TOO_LARGE"):
        run("core.batch", operations=orders)
    assert len(run("core.batch", operations=orders[:1])["results"]) == 1


def test_a_plan_within_a_batch_changes_nothing(gate: Gate, run: Run, database: DatabaseState) -> None:
    kept = run("forums.create", name="Kept")["id"]
    key = replace(KEY, grants=frozenset({"structure.plan", "forums.create", "forums.list", "groups.list"}))
    wanted = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "a", "name": "A"}]}
    plan = {"operation": "structure.plan", "body": {"document": wanted, "prune": True}}
    with database.new_events() as events:
        done = gate.run(Call("core.batch", key, {"operations": [NEWS, plan, BELOW]})).value["results"]
    assert [one["operation"] for one in events()] == ["forums.create", "forums.create"]
    assert len({event["changeSet"] for event in events()}) == 1
    assert (done[1]["result"]["counts"]["create"], done[1]["result"]["deletes"], done[1]["event"]) == (1, 2, None)
    assert [(one["id"], one["path"]) for one in run("forums.list")["results"]] == [
        (kept, "Kept"),
        (kept + 1, "News"),
        (kept + 2, "News > Below"),
    ]


@pytest.mark.parametrize("hidden", [False, True])
def test_a_document_within_a_batch_sets_no_more_passwords(
    run: Run, hidden: bool, monkeypatch: pytest.MonkeyPatch, database: DatabaseState
) -> None:
    """What is told by references is known only while other writes wait."""
    digested: list[str] = []

    def digest(plain: Plain, _: str | None) -> str:
        digested.append(threading.current_thread().name)
        return f"$argon2 {plain.text}"

    monkeypatch.setattr(Plain, "digest", digest)

    def write(number: int) -> dict[str, Any]:
        name = {"$ref": "news.name"} if hidden else "News"
        entries = [{"externalId": f"n{one}", "name": name, "password": f"secret {one}"} for one in range(number)]
        document = {"format": "trellis/1", "name": "site", "forums": entries}
        return {"operation": "structure.apply", "body": {"document": document}}

    with database.unchanged():
        assert "sets 21 passwords" in refuse(run, NEWS, write(21)).detail
    assert len(digested) == (20 if hidden else 0)
    digested.clear()
    run("core.batch", operations=[NEWS, write(3)])
    assert len(digested) == 3
    assert all(("writer" in name) is hidden for name in digested)


def test_what_documents_change_within_a_batch_is_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 5)

    def write(*external_ids: str) -> dict[str, Any]:
        entries = [{"externalId": one, "name": one.title()} for one in external_ids]
        return {"format": "trellis/1", "name": "site", "calendars": entries}

    steps = [{"operation": "structure.apply", "body": {"document": write(*ids)}} for ids in ("abc", "abcdef")]
    assert refuse(run, *steps).message == "BATCH_TOO_LARGE"
    assert len(run("core.batch", operations=steps[:1])["results"]) == 1


def test_what_documents_delete_within_a_batch_is_counted_with_what_is_below(
    run: Run, monkeypatch: pytest.MonkeyPatch, database: DatabaseState
) -> None:
    monkeypatch.setattr("trellis.core.batch.MOST_RECORDS", 5)
    below = [{"externalId": one, "name": one} for one in "bcdef"]
    head = {"format": "trellis/1", "name": "site"}
    run("structure.apply", document=head | {"forums": [{"externalId": "a", "name": "a", "children": below}]})
    delete = {"document": head | {"forums": []}, "prune": True, "allowEmpty": True}
    with database.unchanged():
        assert refuse(run, {"operation": "structure.apply", "body": delete}).message == "BATCH_TOO_LARGE"
    assert run("structure.apply", **delete)["deletes"] == 6


@pytest.mark.parametrize("where", ["a list", "a document"])
def test_references_do_not_multiply_within_one_operation(run: Run, where: str, database: DatabaseState) -> None:
    long = run("forums.create", name="Long", description="x" * 100_000)["id"]
    first = {"operation": "forums.get", "id": long, "as": "long"}
    reference = {"$ref": "long.description"}
    entries = [{"externalId": f"n{number}", "name": "N", "description": reference} for number in range(100)]
    document = {"format": "trellis/1", "name": "site", "forums": entries}
    again = {
        "a list": {"operation": "forums.create", "body": {"name": [reference] * 100}},
        "a document": {"operation": "structure.apply", "body": {"document": document}},
    }[where]
    with database.unchanged():
        refused = refuse(run, first, again)
    assert (refused.facts["index"], refused.facts["problem"].message) == (1, "BATCH_TOO_LARGE")


@pytest.mark.parametrize("verb", ["create", "get"])
def test_references_do_not_multiply_what_was_sent(run: Run, verb: str, database: DatabaseState) -> None:
    long = run("forums.create", name="Long", description="x" * 100_000)["id"]
    first = {"operation": "forums.get", "id": long, "as": "long"}
    again = first | {"as": ""} if verb == "get" else NEWS | {"body": {"name": "N", "description": {"$ref": "long.description"}}}
    again.pop("as")
    with database.unchanged(), pytest.raises(Refused, match="BATCH_TOO_LARGE"):
        run("core.batch", operations=[first, *[again] * 999])


@pytest.mark.parametrize("alike", ["the same record", "a result of the one before"])
def test_a_reference_counts_once(run: Run, alike: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations that cannot run together with those before them are looked at twice."""
    monkeypatch.setattr("trellis.core.batch.MOST_BYTES", 1_000_000)
    long = run("forums.create", name="Long", description="x" * 50_000)["id"]
    first = {"operation": "forums.get", "id": long, "as": "long"}
    if alike == "the same record":
        other = run("forums.create", name="Other")["id"]
        again = {"operation": "forums.update", "id": other, "body": {"description": {"$ref": "long.description"}}}
        operations = [again | {"body": {**again["body"], "name": f"N{number}"}} for number in range(15)]
    else:
        operations = [
            {
                "operation": "forums.create",
                "as": f"n{number}",
                "body": {
                    "description": {"$ref": "long.description"},
                    "name": {"$ref": f"n{number - 1}.name"} if number else "N",
                },
            }
            for number in range(15)
        ]
    assert len(run("core.batch", operations=[first, *operations])["results"]) == 16


def test_a_password_cannot_be_a_reference(run: Run, database: DatabaseState) -> None:
    """It is known only inside the transaction, and hashing it there would keep all other writes waiting."""
    secret = {"operation": "forums.create", "body": {"name": "Secret", "password": {"$ref": "news.name"}}}
    with database.unchanged():
        assert refuse(run, NEWS, secret).facts["problem"].message == "INVALID_VALUE"


def test_no_reference_refers_to_a_secret(run: Run, database: DatabaseState) -> None:
    """It would be stored in a record, its events and messages, and shown again."""
    webhook = {"operation": "webhooks.create", "as": "hook", "body": {"url": "https://hooks.example/", "events": ["*"]}}
    with database.unchanged():
        for named in ({"name": {"$ref": "hook.secret"}}, {"name": "A", "type": {"$ref": "hook.secret"}}):
            problem = refuse(run, webhook, {"operation": "forums.create", "body": named}).facts["problem"]
            assert (problem.message, "whsec_" in str(problem.detail)) == ("INVALID_VALUE", False)
    made = run("core.batch", operations=[webhook, {"operation": "forums.create", "body": {"name": {"$ref": "hook.url"}}}])
    assert made["results"][0]["result"]["secret"].startswith("whsec_")
    assert made["results"][1]["result"]["name"] == "https://hooks.example/"


def test_a_batch_sets_few_passwords(run: Run, database: DatabaseState) -> None:
    one = run("forums.create", name="Secret")["id"]
    many = [{"operation": "forums.update", "id": one, "body": {"password": f"p{number}"}} for number in range(21)]
    with database.unchanged(), pytest.raises(Refused, match="SETS_TOO_MANY_PASSWORDS"):
        run("core.batch", operations=many)
    assert len(run("core.batch", operations=many[:3])["results"]) == 3


def test_a_password_that_a_node_has_already_is_no_change(run: Run, database: DatabaseState) -> None:
    put = {"operation": "forums.put_external", "body": {"externalId": "staff", "name": "Staff", "password": "open sesame"}}
    run("core.batch", operations=[put])
    with database.unchanged():
        run("core.batch", operations=[put])
