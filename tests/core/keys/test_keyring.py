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
from trellis.store.engine import Transaction

HERE = "192.0.2.7"


class Entrance:
    """Checks keys as the API does, and remembers them as a process does."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.keyring = Keyring()

    def check(self, text: str, address: str = HERE) -> Bearer:
        now = self.gate.now()

        def authenticate_in(tx: Transaction) -> Bearer:
            version = tx.data_version()
            known = self.keyring.find(text, address, now, version)
            return known or self.keyring.admit(authenticate(tx, text, now), text, address, now, version)

        return self.gate.store.read_single(authenticate_in)

    def refuses(self, text: str, address: str = HERE, message: str = "INVALID_API_KEY") -> bool:
        with pytest.raises(Refused) as refused:
            self.check(text, address)
        return refused.value.message == message


@pytest.fixture
def entrance(gate: Gate) -> Entrance:
    return Entrance(gate)


def test_a_good_key_acts_under_its_name_with_its_grants(entrance: Entrance, key: MakeKey) -> None:
    bearer = entrance.check(key(["forums.list", "forums.get"], rateLimit=5, logRequests=False))
    assert (bearer.actor.type, bearer.actor.id, bearer.actor.name) == ("key", 1, "Plugin")
    assert bearer.actor.may("forums.list")
    assert not bearer.actor.may("forums.create")
    assert (bearer.rate_limit, bearer.log_requests) == (5, False)


def test_a_key_without_grants_may_do_nothing(entrance: Entrance, key: MakeKey) -> None:
    actor = entrance.check(key()).actor
    assert [name for name in entrance.gate.catalogue if actor.may(name)] == []


@pytest.mark.parametrize("text", ["", "secret", "trl_", "trl_AAAAAAAA_" + "b" * 38, "x" * 10_000, "\ud800"])
def test_what_is_no_key_is_refused(entrance: Entrance, text: str) -> None:
    assert entrance.refuses(text)


def test_a_well_formed_key_that_nobody_made_is_refused(entrance: Entrance) -> None:
    assert entrance.refuses(str(new_secret()))


def test_a_well_formed_key_with_anothers_public_part_is_refused(entrance: Entrance, key: MakeKey) -> None:
    good = parse_secret(key("*"))
    assert good is not None
    assert entrance.refuses(str(new_secret(good.public)))


def test_the_refusal_does_not_say_why(entrance: Entrance, key: MakeKey, run: Run, clock: Clock) -> None:
    expired, revoked = key(expires="1h"), key()
    run("keys.revoke", 2)
    clock.move(hours=1)
    details = set()
    for text in ("nonsense", str(new_secret()), expired, revoked):
        with pytest.raises(Refused) as refused:
            entrance.check(text)
        details.add((refused.value.message, refused.value.detail, refused.value.code))
    assert len(details) == 1


def test_a_key_is_good_until_it_expires(entrance: Entrance, key: MakeKey, clock: Clock) -> None:
    text = key(expires="1d")
    clock.move(days=1, milliseconds=-1)
    entrance.check(text)
    clock.move(milliseconds=1)
    assert entrance.refuses(text)


def test_a_change_holds_for_the_next_request(entrance: Entrance, key: MakeKey, run: Run) -> None:
    text = key("forums.list")
    assert entrance.check(text).actor.may("forums.list")
    run("keys.update", 1, grants="forums.get", name="Sync", rateLimit=9)
    bearer = entrance.check(text)
    assert not bearer.actor.may("forums.list")
    assert bearer.actor.may("forums.get")
    assert (bearer.actor.name, bearer.rate_limit) == ("Sync", 9)
    run("keys.revoke", 1)
    assert entrance.refuses(text)


def test_a_change_made_by_another_process_holds_for_the_next_request(new_settings: NewSettings, clock: Clock) -> None:
    settings = new_settings()
    here, there = compose(settings, clock=clock), compose(settings, clock=clock)
    text = there.run(Call("keys.create", TERMINAL, {"name": "Plugin", "grants": "forums.list"})).value["key"]
    entrance = Entrance(here)
    assert entrance.check(text).actor.may("forums.list")
    there.run(Call("keys.update", TERMINAL, {"ungrant": "forums.list"}, 1))
    assert not entrance.check(text).actor.may("forums.list")
    there.run(Call("keys.revoke", TERMINAL, {}, 1))
    assert entrance.refuses(text)
    here.store.close()
    there.store.close()


def test_a_proof_that_was_overtaken_by_a_change_is_not_remembered(gate: Gate, key: MakeKey, run: Run) -> None:
    """One request proves the key in a thread; meanwhile it is revoked, and another request has seen the new version."""
    keyring, text, now = Keyring(), key("*"), gate.now()
    assert keyring.find(text, HERE, now, 1) is None
    proof = gate.store.read_single(lambda tx: authenticate(tx, text, now))
    run("keys.revoke", 1)
    assert keyring.find(text, HERE, now, 2) is None
    keyring.admit(proof, text, HERE, now, 1)
    assert keyring.find(text, HERE, now, 2) is None


def test_nothing_is_remembered_without_a_version(gate: Gate, key: MakeKey) -> None:
    keyring, text, now = Keyring(), key("*"), gate.now()
    proof = gate.store.read_single(lambda tx: authenticate(tx, text, now))
    for before, after in ((None, None), (1, None), (None, 1)):
        keyring.find(text, HERE, now, before)
        keyring.admit(proof, text, HERE, now, before)
        assert keyring.find(text, HERE, now, after) is None
    keyring.admit(proof, text, HERE, now, 1)
    assert keyring.find(text, HERE, now, 1) is not None


def test_after_a_rotation_only_the_new_secret_is_good(entrance: Entrance, key: MakeKey, run: Run) -> None:
    old = key()
    entrance.check(old)
    new = run("keys.rotate", 1)["key"]
    entrance.check(new)
    assert entrance.refuses(old)


def test_an_overlap_lets_the_old_secret_live_on_and_then_ends_it(entrance: Entrance, key: MakeKey, run: Run, clock: Clock) -> None:
    old, new = key(), run("keys.rotate", 1, overlapDays=3)["key"]
    assert entrance.check(old).key.id == entrance.check(new).key.id == 1
    clock.move(days=3)
    assert entrance.refuses(old)
    entrance.check(new)


def test_a_second_rotation_ends_the_oldest_secret(entrance: Entrance, key: MakeKey, run: Run) -> None:
    first = key()
    second, third = (run("keys.rotate", 1, overlapDays=7)["key"] for _ in range(2))
    assert entrance.refuses(first)
    entrance.check(second)
    entrance.check(third)


def test_a_revocation_ends_both_secrets(entrance: Entrance, key: MakeKey, run: Run) -> None:
    old, new = key(), run("keys.rotate", 1, overlapDays=7)["key"]
    run("keys.revoke", 1)
    assert entrance.refuses(old)
    assert entrance.refuses(new)


# Which addresses a key lists, some of those from which it is good, and some from which it is not.
ADDRESSES: tuple[tuple[list[str], list[str], list[str]], ...] = (
    (["192.0.2.7"], ["192.0.2.7", "::ffff:192.0.2.7", "::ffff:c000:207"], ["192.0.2.8", "::ffff:192.0.2.8", "::1"]),
    (["192.0.2.128/25"], ["192.0.2.128", "192.0.2.255"], ["192.0.2.127"]),
    (["2001:db8::/32"], ["2001:db8::1", "2001:DB8:ffff::"], ["2001:db9::", "192.0.2.7"]),
    (["::1", "127.0.0.0/8"], ["::1", "127.9.9.9"], ["::2", "10.0.0.1"]),
    (["::ffff:192.0.2.7"], ["192.0.2.7", "::ffff:192.0.2.7"], ["192.0.2.8"]),
    (["0.0.0.0/0"], ["203.0.113.9", "::ffff:203.0.113.9"], ["2001:db8::1"]),
    ([], ["203.0.113.9", "2001:db8::1", "somewhere"], []),
    (["192.0.2.7"], [], ["", "somewhere", "192.0.2.7/32"]),
)


def test_a_key_is_good_from_the_listed_addresses_only(entrance: Entrance, key: MakeKey) -> None:
    for listed, inside, outside in ADDRESSES:
        text = key(addresses=listed)
        for address in inside:
            entrance.check(text, address)
        for address in outside:
            assert entrance.refuses(text, address, "IP_ADDRESS_NOT_ALLOWED"), (listed, address)


def test_a_bad_key_from_a_wrong_address_is_told_to_be_bad(entrance: Entrance, key: MakeKey, run: Run) -> None:
    text = key(addresses="192.0.2.7")
    run("keys.revoke", 1)
    assert entrance.refuses(text, "203.0.113.9")


def record_uses(entrance: Entrance) -> None:
    uses = entrance.keyring.take_uses()
    entrance.gate.store.write(lambda tx: keys.record_uses(tx, uses)).result()


def test_the_last_use_is_recorded_at_most_once_a_minute(entrance: Entrance, key: MakeKey, run: Run, clock: Clock) -> None:
    text = key()
    for _ in range(3):
        entrance.check(text)
    assert entrance.keyring.take_uses() == [(1, clock.text)]
    clock.move(seconds=59)  # another minute on the clock's face, but not a minute later
    entrance.check(text)
    assert entrance.keyring.take_uses() == []
    clock.move(seconds=1)
    entrance.check(text)
    record_uses(entrance)
    assert run("keys.get", 1)["lastUsedAt"] == clock.text


def test_a_refused_key_is_not_used(entrance: Entrance, key: MakeKey) -> None:
    text = key(addresses="192.0.2.8")
    entrance.refuses(text, message="IP_ADDRESS_NOT_ALLOWED")
    assert entrance.keyring.take_uses() == []


def test_an_older_use_does_not_undo_a_newer_one(entrance: Entrance, key: MakeKey, run: Run) -> None:
    key()
    entrance.gate.store.write(
        lambda tx: keys.record_uses(tx, [(1, "2026-02-02T00:00:00.000Z"), (1, "2026-02-01T23:00:00.000Z")])
    ).result()
    assert run("keys.get", 1)["lastUsedAt"] == "2026-02-02T00:00:00.000Z"


def test_uses_are_recorded_after_the_clock_was_ahead(entrance: Entrance, key: MakeKey, run: Run, clock: Clock) -> None:
    text = key(expires="365d")
    clock.move(days=30)
    entrance.check(text)
    record_uses(entrance)
    clock.move(days=-30)
    entrance.check(text)
    record_uses(entrance)
    assert run("keys.get", 1)["lastUsedAt"] == clock.text


def test_a_use_survives_a_change_of_the_key_and_makes_no_event(entrance: Entrance, key: MakeKey, run: Run, clock: Clock) -> None:
    entrance.check(key())
    record_uses(entrance)
    assert run("keys.update", 1, name="Sync")["lastUsedAt"] == clock.text
    assert len(run("events.list")["results"]) == 2
