"""The judgement of a presented key: who may come in, from where, until when, and that every change holds at once."""

import pytest

from tests.conftest import NewSettings
from tests.fixture_types import Clock, MakeKey, Run
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.keys.keyring import Bearer, Keyring, authenticate
from trellis.core.keys.secret import new_secret, parse_secret
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store import keys

HERE = "192.0.2.7"


class Porter:
    """Judges keys as a door does, and remembers as a process does."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.keyring = Keyring()

    def judge(self, text: str, address: str = HERE) -> Bearer:
        now = self.gate.now()
        return self.gate.store.read_single(lambda tx: self.keyring.judge(tx, text, address, now, tx.data_version()))

    def refuses(self, text: str, address: str = HERE, message: str = "INVALID_API_KEY") -> bool:
        with pytest.raises(Refused) as refused:
            self.judge(text, address)
        return refused.value.message == message


@pytest.fixture
def porter(gate: Gate) -> Porter:
    return Porter(gate)


def test_a_good_key_acts_under_its_name_with_its_grants(porter: Porter, key: MakeKey) -> None:
    bearer = porter.judge(key(["forums.list", "forums.get"], rateLimit=5, logRequests=False))
    assert (bearer.actor.type, bearer.actor.id, bearer.actor.name) == ("key", 1, "Plugin")
    assert bearer.actor.may("forums.list")
    assert not bearer.actor.may("forums.create")
    assert (bearer.rate_limit, bearer.log_requests) == (5, False)


def test_a_key_without_grants_may_do_nothing(porter: Porter, key: MakeKey) -> None:
    actor = porter.judge(key()).actor
    assert [name for name in porter.gate.catalogue if actor.may(name)] == []


@pytest.mark.parametrize("text", ["", "secret", "trl_", "trl_AAAAAAAA_" + "b" * 38, "x" * 10_000, "\ud800"])
def test_what_is_no_key_is_refused(porter: Porter, text: str) -> None:
    assert porter.refuses(text)


def test_a_well_formed_key_that_nobody_made_is_refused(porter: Porter) -> None:
    assert porter.refuses(str(new_secret()))


def test_a_well_formed_key_with_anothers_public_part_is_refused(porter: Porter, key: MakeKey) -> None:
    good = parse_secret(key("*"))
    assert good is not None
    assert porter.refuses(str(new_secret(good.public)))


def test_the_refusal_does_not_say_why(porter: Porter, key: MakeKey, run: Run, clock: Clock) -> None:
    expired, revoked = key(expires="1h"), key()
    run("keys.revoke", 2)
    clock.move(hours=1)
    details = set()
    for text in ("nonsense", str(new_secret()), expired, revoked):
        with pytest.raises(Refused) as refused:
            porter.judge(text)
        details.add((refused.value.message, refused.value.detail, refused.value.code))
    assert len(details) == 1


def test_a_key_is_good_until_it_expires(porter: Porter, key: MakeKey, clock: Clock) -> None:
    text = key(expires="1d")
    clock.move(days=1, milliseconds=-1)
    porter.judge(text)
    clock.move(milliseconds=1)
    assert porter.refuses(text)


def test_a_change_holds_for_the_next_request(porter: Porter, key: MakeKey, run: Run) -> None:
    text = key("forums.list")
    assert porter.judge(text).actor.may("forums.list")
    run("keys.update", 1, grants="forums.get", name="Sync", rateLimit=9)
    bearer = porter.judge(text)
    assert not bearer.actor.may("forums.list")
    assert bearer.actor.may("forums.get")
    assert (bearer.actor.name, bearer.rate_limit) == ("Sync", 9)
    run("keys.revoke", 1)
    assert porter.refuses(text)


def test_a_change_made_by_another_process_holds_for_the_next_request(new_settings: NewSettings, clock: Clock) -> None:
    settings = new_settings()
    here, there = compose(settings, clock=clock), compose(settings, clock=clock)
    text = there.run(Call("keys.create", TERMINAL, {"name": "Plugin", "grants": "forums.list"})).value["key"]
    porter = Porter(here)
    assert porter.judge(text).actor.may("forums.list")
    there.run(Call("keys.update", TERMINAL, {"ungrant": "forums.list"}, 1))
    assert not porter.judge(text).actor.may("forums.list")
    there.run(Call("keys.revoke", TERMINAL, {}, 1))
    assert porter.refuses(text)
    here.store.close()
    there.store.close()


def test_a_proof_that_was_overtaken_by_a_change_is_not_remembered(gate: Gate, key: MakeKey, run: Run) -> None:
    """One request proves the key in a thread; meanwhile it is revoked, and another request has seen the new version."""
    keyring, text, now = Keyring(), key("*"), gate.now()
    assert keyring.recall(text, HERE, now, 1) is None
    proof = gate.store.read_single(lambda tx: authenticate(tx, text, now))
    run("keys.revoke", 1)
    assert keyring.recall(text, HERE, now, 2) is None
    keyring.admit(proof, text, HERE, now, 1)
    assert keyring.recall(text, HERE, now, 2) is None


def test_nothing_is_remembered_without_a_version(gate: Gate, key: MakeKey) -> None:
    keyring, text, now = Keyring(), key("*"), gate.now()
    proof = gate.store.read_single(lambda tx: authenticate(tx, text, now))
    for before, after in ((None, None), (1, None), (None, 1)):
        keyring.recall(text, HERE, now, before)
        keyring.admit(proof, text, HERE, now, before)
        assert keyring.recall(text, HERE, now, after) is None
    keyring.admit(proof, text, HERE, now, 1)
    assert keyring.recall(text, HERE, now, 1) is not None


def test_after_a_rotation_only_the_new_secret_is_good(porter: Porter, key: MakeKey, run: Run) -> None:
    old = key()
    porter.judge(old)
    new = run("keys.rotate", 1)["key"]
    porter.judge(new)
    assert porter.refuses(old)


def test_an_overlap_lets_the_old_secret_live_on_and_then_ends_it(porter: Porter, key: MakeKey, run: Run, clock: Clock) -> None:
    old, new = key(), run("keys.rotate", 1, overlapDays=3)["key"]
    assert porter.judge(old).key.id == porter.judge(new).key.id == 1
    clock.move(days=3)
    assert porter.refuses(old)
    porter.judge(new)


def test_a_second_rotation_ends_the_oldest_secret(porter: Porter, key: MakeKey, run: Run) -> None:
    first = key()
    second, third = (run("keys.rotate", 1, overlapDays=7)["key"] for _ in range(2))
    assert porter.refuses(first)
    porter.judge(second)
    porter.judge(third)


def test_a_revocation_ends_both_secrets(porter: Porter, key: MakeKey, run: Run) -> None:
    old, new = key(), run("keys.rotate", 1, overlapDays=7)["key"]
    run("keys.revoke", 1)
    assert porter.refuses(old)
    assert porter.refuses(new)


@pytest.mark.parametrize(
    ("listed", "inside", "outside"),
    [
        (["192.0.2.7"], ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"], ["192.0.2.8", "::ffff:192.0.2.8", "::1"]),
        (["192.0.2.128/25"], ["192.0.2.128", "192.0.2.255"], ["192.0.2.127"]),
        (["2001:db8::/32"], ["2001:db8::1", "2001:DB8:ffff::"], ["2001:db9::", "192.0.2.7"]),
        (["::1", "127.0.0.0/8"], ["::1", "127.9.9.9"], ["::2", "10.0.0.1"]),
        (["::ffff:192.0.2.7"], ["192.0.2.7", "::ffff:192.0.2.7"], ["192.0.2.8"]),
        (["0.0.0.0/0"], ["203.0.113.9", "::ffff:203.0.113.9"], ["2001:db8::1"]),
        ([], ["203.0.113.9", "2001:db8::1", "somewhere"], []),
        (["192.0.2.7"], [], ["", "somewhere", "192.0.2.7/32"]),
    ],
)
def test_a_key_is_good_from_the_listed_addresses_only(
    porter: Porter, key: MakeKey, listed: list[str], inside: list[str], outside: list[str]
) -> None:
    text = key(addresses=listed)
    for address in inside:
        porter.judge(text, address)
    for address in outside:
        assert porter.refuses(text, address, "IP_ADDRESS_NOT_ALLOWED"), address


def test_a_bad_key_from_a_wrong_address_is_told_to_be_bad(porter: Porter, key: MakeKey, run: Run) -> None:
    text = key(addresses="192.0.2.7")
    run("keys.revoke", 1)
    assert porter.refuses(text, "203.0.113.9")


def record_uses(porter: Porter) -> None:
    uses = porter.keyring.take_uses()
    porter.gate.store.write(lambda tx: keys.record_uses(tx, uses)).result()


def test_the_last_use_is_recorded_at_most_once_a_minute(porter: Porter, key: MakeKey, run: Run, clock: Clock) -> None:
    text = key()
    for _ in range(3):
        porter.judge(text)
    assert porter.keyring.take_uses() == [(1, clock.text)]
    clock.move(seconds=59)  # another minute on the clock's face, but not a minute later
    porter.judge(text)
    assert porter.keyring.take_uses() == []
    clock.move(seconds=1)
    porter.judge(text)
    record_uses(porter)
    assert run("keys.get", 1)["lastUsedAt"] == clock.text


def test_a_refused_key_is_not_used(porter: Porter, key: MakeKey) -> None:
    text = key(addresses="192.0.2.8")
    porter.refuses(text, message="IP_ADDRESS_NOT_ALLOWED")
    assert porter.keyring.take_uses() == []


def test_an_older_use_does_not_undo_a_newer_one(porter: Porter, key: MakeKey, run: Run) -> None:
    key()
    porter.gate.store.write(
        lambda tx: keys.record_uses(tx, [(1, "2026-02-02T00:00:00.000Z"), (1, "2026-02-01T00:00:00.000Z")])
    ).result()
    assert run("keys.get", 1)["lastUsedAt"] == "2026-02-02T00:00:00.000Z"


def test_a_use_survives_a_change_of_the_key_and_makes_no_event(porter: Porter, key: MakeKey, run: Run, clock: Clock) -> None:
    porter.judge(key())
    record_uses(porter)
    assert run("keys.update", 1, name="Sync")["lastUsedAt"] == clock.text
    assert len(run("events.list")["results"]) == 2
