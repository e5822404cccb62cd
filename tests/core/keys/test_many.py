"""Several keys at once: their grants, and revoking them."""

import pytest

from tests.fixture_types import Events, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.keys import MOST
from trellis.core.operation import Call
from trellis.errors import Refused


def _make(run: Run, name: str, *grants: str) -> int:
    return int(run("keys.create", name=name, grants=list(grants))["id"])


def test_grants_of_several_keys_are_one_change_set_and_one_undo(gate: Gate, run: Run, events: Events) -> None:
    mirror, feed, full = _make(run, "Mirror", "forums.list"), _make(run, "Feed"), _make(run, "Full", "forums.get", "forums.list")
    known = len(events())
    raw = {"ids": [mirror, feed, full], "grant": ["forums.get"]}
    planned = run("keys.update_many", **raw, dryRun=True)
    both = ["forums.get", "forums.list"]
    assert [one["key"]["grants"] for one in planned["results"]] == [both, ["forums.get"], both]
    assert {one["event"] for one in planned["results"]} == {None}
    assert len(events()) == known
    result = gate.run(Call("keys.update_many", TERMINAL, raw, reason="A new page reads them"))
    new = events()[known:]
    assert [(event["operation"], event["resourceId"]) for event in new] == [("keys.update", mirror), ("keys.update", feed)]
    assert {(event["changeSet"], event["reason"]) for event in new} == {(result.change_set, "A new page reads them")}
    assert [one["event"] for one in result.value["results"]] == [new[0]["seq"], new[1]["seq"], None]
    run("changesets.restore", result.change_set)
    assert [run("keys.get", number)["grants"] for number in (mirror, feed, full)] == [
        ["forums.list"],
        [],
        ["forums.get", "forums.list"],
    ]


def test_several_keys_are_revoked_with_their_webhooks_or_none_is(gate: Gate, run: Run, events: Events) -> None:
    one, other, gone = _make(run, "One"), _make(run, "Other"), _make(run, "Gone")
    run("keys.revoke", gone)
    known = events()
    with pytest.raises(Refused, match="'Gone' was revoked"):
        run("keys.revoke_many", ids=[one, other, gone])
    with pytest.raises(Refused) as unknown:
        run("keys.revoke_many", ids=[one, 99])
    assert unknown.value.message == "INVALID_ID"
    assert events() == known
    raw = {"url": "https://hooks.example/x", "events": ["*"]}
    webhook = gate.run(Call("webhooks.create", Actor("key", other, "Other", frozenset({"webhooks.create"})), raw)).value["id"]
    revoked = run("keys.revoke_many", ids=[one, other], reason="The partner left")
    assert [key["webhooks"] for key in revoked["results"]] == [[], [webhook]]
    assert run("webhooks.get", webhook)["enabled"] is False
    assert [(run("keys.get", number)["state"], run("keys.get", number)["revokedBecause"]) for number in (one, other)] == [
        ("revoked", "The partner left")
    ] * 2
    assert len({event["changeSet"] for event in events()[len(known) + 1 :]}) == 1


def test_keys_must_be_named_and_not_too_many(run: Run) -> None:
    for ids in (None, list(range(1, MOST + 2))):
        with pytest.raises(Refused, match="ids"):
            run("keys.revoke_many", **({} if ids is None else {"ids": ids}))


def test_keys_are_listed_by_their_ids(run: Run) -> None:
    numbers = [_make(run, name) for name in ("One", "Two", "Three")]
    assert [key["id"] for key in run("keys.list", ids=[numbers[0], numbers[2], 99])["results"]] == [numbers[0], numbers[2]]
    assert run("keys.list", ids=[])["results"] == run("forums.list", ids=[])["results"] == []
