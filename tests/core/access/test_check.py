"""May this key …? The same judgement as over the API, with the reason."""

from functools import partial
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.gate import Gate
from trellis.core.keys.keyring import Keyring, authenticate
from trellis.core.operation import Call
from trellis.errors import Refused


@pytest.mark.parametrize(
    ("terms", "asked", "reason"),
    [
        ({}, {"operation": "forums.list"}, None),
        ({}, {"operation": "core.hello"}, None),
        ({}, {"operation": "forums.delete"}, "NO_PERMISSION"),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list", "address": "192.0.2.9"}, None),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list"}, None),
        ({"addresses": ["192.0.2.0/24"]}, {"operation": "forums.list", "address": "198.51.100.9"}, "IP_ADDRESS_NOT_ALLOWED"),
        ({"addresses": ["2001:db8::/48"]}, {"operation": "core.hello", "address": "198.51.100.9"}, "IP_ADDRESS_NOT_ALLOWED"),
        ({"expires": "1d"}, {"operation": "forums.list"}, None),
        ({"expires": "1d"}, {"operation": "forums.list", "at": "2026-02-01T09:30:00Z"}, "INVALID_API_KEY"),
        ({"expires": "1d"}, {"operation": "forums.list", "at": "2026-02-01T09:29:59Z"}, None),
    ],
)
def test_it_answers_with_the_reason(
    run: Run, key: MakeKey, gate: Gate, terms: dict[str, Any], asked: dict[str, str], reason: str | None
) -> None:
    text = key("forums.list", **terms)
    answer = run("access.check", holder="1", **asked)
    assert (answer["may"], answer["reason"]) == (reason is None, reason)
    assert answer["detail"].startswith("Yes: " if reason is None else "No: ")
    if reason == "IP_ADDRESS_NOT_ALLOWED":  # and the API judges so too
        with gate.store.reading() as tx, pytest.raises(Refused, match=reason):
            Keyring().admit(authenticate(tx, text, gate.now()), text, asked["address"], gate.now(), None)


def test_a_revoked_key_may_nothing_and_the_answer_says_why(run: Run, key: MakeKey, clock: Clock) -> None:
    key("*")
    run("keys.revoke", 1, reason="Leaked.")
    clock.move(hours=1)
    answer = run("access.check", holder="1", operation="core.hello")
    assert answer["reason"] == "INVALID_API_KEY"
    assert "revoked on 31 January 2026, 09:30 UTC: Leaked." in answer["detail"]


def test_of_a_key_that_is_paused_and_expired_it_says_what_the_list_of_keys_does(run: Run, key: MakeKey, clock: Clock) -> None:
    key("*", expires="1h")
    run("keys.pause", 1)
    assert run("access.check", holder="1", operation="core.hello")["condition"] == "paused"
    clock.move(hours=1)
    assert run("keys.get", 1)["state"] == "expired"
    assert run("access.check", holder="1", operation="core.hello")["condition"] == "expires"


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({"operation": "keys.create"}, "UNKNOWN_OPERATION"),
        ({"operation": "forums.lost"}, "UNKNOWN_OPERATION"),
        ({}, "MISSING_VALUE"),
        ({"operation": "forums.list", "address": "home"}, "INVALID_VALUE"),
        ({"operation": "forums.list", "at": "soon"}, "INVALID_VALUE"),
    ],
)
def test_what_cannot_be_asked_is_refused(run: Run, key: MakeKey, asked: dict[str, str], refusal: str) -> None:
    key("*")
    with pytest.raises(Refused) as refused:
        run("access.check", holder="1", **asked)
    assert refused.value.message == refusal


def test_a_misspelt_operation_is_refused_with_the_nearest_one(run: Run, key: MakeKey) -> None:
    key("*")
    for name, hint in (("forums.delet", " Did you mean forums.delete?"), ("keys.create", ""), ("?", "")):
        for ask in (partial(run, "access.check", holder="1"), partial(run, "access.keys")):
            with pytest.raises(Refused) as refused:
                ask(operation=name)
            assert refused.value.detail == f"operation: '{name}' cannot be granted to a key.{hint}"


def test_an_unknown_key_is_refused(run: Run) -> None:
    with pytest.raises(Refused, match=r"^INVALID_ID"):
        run("access.check", holder="9", operation="forums.list")


# --- bounds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "asked", "condition"),
    [
        ({"until": "1d"}, {}, None),
        ({"until": "1d"}, {"at": "2026-02-02T00:00:00Z"}, "until"),
        ({"dryRunOnly": True}, {}, "dryRunOnly"),
        ({"dryRunOnly": True}, {"asDryRun": True}, None),
        ({"level": "propose"}, {}, "level"),
        ({"level": "propose"}, {"asDryRun": True}, None),
        ({"perDay": 0}, {}, "perDay"),
        ({"perDay": 1}, {}, None),
    ],
)
def test_it_names_the_condition_of_a_bound_that_is_not_met(
    run: Run, key: MakeKey, bound: dict[str, Any], asked: dict[str, Any], condition: str | None
) -> None:
    key("forums.delete", bounds={"forums.delete": bound})
    answer = run("access.check", holder="1", operation="forums.delete", **asked)
    assert (answer["may"], answer["condition"]) == (condition is None, condition)


def test_a_limit_of_none_is_told_as_never(run: Run, key: MakeKey) -> None:
    key("forums.delete", perDay=0)
    answer = run("access.check", holder="1", operation="forums.delete")
    assert answer["condition"] == "perDay"
    assert answer["detail"] == "No: the key may never run operations: its limit is 0 times a day."


def test_a_limit_of_the_whole_key_is_told_beside_that_of_the_grant(run: Run, key: MakeKey) -> None:
    key("forums.list", perDay=1000, bounds={"forums.list": {"perDay": 5}})
    detail = "Yes: it has been granted, without an expiry. Only 5 times a day. All its grants together: 1,000 times a day."
    assert run("access.check", holder="1", operation="forums.list")["detail"] == detail
    assert run("access.keys", operation="forums.list")["results"][0]["detail"] == detail


def test_a_node_is_judged_by_where_it_stands(run: Run, key: MakeKey, community: Community) -> None:
    key("forums.*", bounds={"forums.delete": {"under": [f"forums:{community.news}"]}})
    asked = {"holder": "1", "operation": "forums.delete"}
    assert run("access.check", **asked, id=community.releases)["may"]
    outside = run("access.check", **asked, id=community.help)
    assert (outside["condition"], outside["reason"]) == ("under", "INVALID_ID")
    run("forums.update", community.help, parentId=community.news)
    assert run("access.check", **asked, id=community.help)["may"]
    assert run("access.check", holder="1", operation="forums.get", id=community.wiki)["may"]


def test_what_was_answered_is_what_happens(run: Run, key: MakeKey, community: Community, gate: Gate) -> None:
    text = key("forums.delete", bounds={"forums.delete": {"under": [f"forums:{community.help}"]}})
    with gate.store.reading() as tx:
        actor = authenticate(tx, text, gate.now()).actor
    for node in (community.news, community.help):
        answer = run("access.check", holder="1", operation="forums.delete", id=node)
        call = Call("forums.delete", actor, {"deleteChildrenOrMove": -1, "dryRun": True}, node)
        if answer["may"]:
            gate.run(call)
        else:
            with pytest.raises(Refused, match=answer["reason"]):
                gate.run(call)


@pytest.mark.parametrize("level", ["allow", "propose"])
def test_a_call_that_would_be_refused_is_not_said_to_become_a_proposal(
    run: Run, key: MakeKey, community: Community, gate: Gate, level: str
) -> None:
    text = key("forums.update", bounds={"forums.update": {"level": level, "under": [f"forums:{community.help}"], "perDay": 1}})
    with gate.store.reading() as tx:
        actor = authenticate(tx, text, gate.now()).actor

    def judge(node: int) -> tuple[str | None, str | None]:
        answer = run("access.check", holder="1", operation="forums.update", id=node)
        return answer["condition"], answer["reason"]

    def refuse(node: int) -> str:
        with pytest.raises(Refused) as refused:
            gate.run(Call("forums.update", actor, {"name": "Other"}, node))
        return refused.value.message

    assert judge(community.news) == ("under", refuse(community.news))
    assert judge(community.help) == ((None, None) if level == "allow" else ("level", None))
    number = gate.run(Call("forums.update", actor, {"name": "Used up"}, community.help)).value["id"]
    if level == "propose":
        run("proposals.approve", number)
    for node in (community.news, community.help):
        assert judge(node) == ("perDay", refuse(node))


# --- which key ----------------------------------------------------------------------------------------------------


def test_a_key_is_found_by_id_public_part_and_name(run: Run, key: MakeKey) -> None:
    text = key("forums.list", name="Calendar sync")
    for named in ("1", text.split("_")[1], text, "Calendar sync"):
        assert run("access.check", holder=named, operation="forums.list")["may"]


def test_a_name_of_several_keys_is_refused_with_their_ids(run: Run, key: MakeKey) -> None:
    key("forums.list", name="Twin")
    key("forums.list", name="Twin")
    with pytest.raises(Refused, match="Send the id: 1, 2"):
        run("access.check", holder="Twin", operation="forums.list")
    run("keys.revoke", 2)
    assert run("access.check", holder="Twin", operation="forums.list")["may"]


def test_a_whole_number_is_an_id_for_the_check_and_for_the_terminal(run: Run, key: MakeKey) -> None:
    key("forums.list", name="7")
    for number in ("7", "0", "-1", "9" * 30, " 7 "):
        for ask in (partial(run, "access.check", holder=number, operation="forums.list"), partial(run, "keys.find", key=number)):
            with pytest.raises(Refused, match="There is no key with the id"):
                ask()
    assert run("keys.find", key="1")["name"] == "7"


def test_a_key_that_is_not_found_is_named_without_its_secret(run: Run) -> None:
    lost = "trl_abcdefgh_" + "x" * 38
    for ask in (partial(run, "access.check", holder=lost, operation="forums.list"), partial(run, "keys.find", key=lost)):
        with pytest.raises(Refused, match=r"There is no key 'trl_abcdefgh_\[hidden\]'"):
            ask()


# --- groups -------------------------------------------------------------------------------------------------------


def test_a_group_has_a_right_by_name_for_everyone_or_not(run: Run, community: Community) -> None:
    def ask(right: str, node: int) -> dict[str, Any]:
        answer = run("access.check", holder=f"group:{community.patrons}", operation=f"forums.{right}", id=node)
        assert isinstance(answer, dict)
        return answer

    assert ask("view", community.betas)["detail"] == "Yes: everyone."
    assert ask("read", community.betas)["detail"] == "Yes: by name."
    refused = ask("add", community.news)
    assert (refused["may"], refused["condition"]) == (False, "add")


def test_what_makes_no_sense_is_refused(run: Run, key: MakeKey, community: Community) -> None:
    key("*")
    tried: tuple[dict[str, Any], ...] = (
        {},
        {"holder": "1"},
        {"holder": "group:3", "operation": "forums.read"},
        {"holder": "group:3", "operation": "forums.nonsense", "id": 1},
        {"holder": "group:3", "operation": "groups.read", "id": 1},
        {"holder": "group:3", "operation": "read", "id": 1},
        {"holder": "group:999", "operation": "forums.read", "id": 1},
        {"holder": "group:3", "operation": "forums.read", "id": 999},
        {"holder": "group:99999999999999999999999", "operation": "forums.read", "id": 1},
        {"holder": "group:0000000000000000039", "operation": "forums.read", "id": 1},
        {"holder": "99999999999999999999999", "operation": "forums.list"},
        {"holder": "1", "operation": "forums.delete", "id": 999},
        {"holder": "1", "operation": "events.list", "id": 1},
    )
    for asked in tried:
        with pytest.raises(Refused):
            run("access.check", **asked)
