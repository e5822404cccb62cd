"""The rows of API keys."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from trellis.settings import Settings
from trellis.store import keys
from trellis.store.engine.store import Store
from trellis.store.keys import Key

PLUGIN = Key(
    id=1,
    public="AAAAAAAA",
    name="Plugin",
    digest="d1",
    dialect="trellis",
    grants=["forums.list"],
    created_at="2026-01-01",
    updated_at="2026-01-01",
)
SYNC = replace(
    PLUGIN,
    id=2,
    public="aaaaaaaa",
    name="Sync",
    old_digest="d0",
    old_until="2026-02-01",
    grants=[],
    expires_at="2026-03-01",
    addresses=["192.0.2.0/24", "::1/128"],
    rate_limit=0,
    per_day=5,
    log_requests=False,
    dialect="invision",
    preset="agent",
    paused_at="2026-01-04",
    paused_because="Odd.",
    revoked_at="2026-01-05",
    revoked_because="Lost.",
)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store(settings)
    store.write(lambda tx: keys.insert(tx, PLUGIN)).result(30)
    store.write(lambda tx: keys.insert(tx, SYNC)).result(30)
    yield store
    store.close()


@pytest.mark.parametrize("key", [PLUGIN, SYNC], ids=["plain", "with everything"])
def test_a_key_is_read_back_as_it_was_written_whichever_way_it_is_asked_for(store: Store, key: Key) -> None:
    with store.reading() as tx:
        assert keys.find(tx, key.id) == keys.find_by_public_part(tx, key.public) == key


def test_a_public_part_is_found_letter_for_letter(store: Store) -> None:
    with store.reading() as tx:
        assert keys.find_by_public_part(tx, "aAaAaAaA") is None
        assert keys.find(tx, 9) is None


def test_two_keys_cannot_share_a_public_part(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.write(lambda tx: keys.insert(tx, replace(PLUGIN, id=3))).result(30)


def test_keys_come_in_pages_by_id(store: Store) -> None:
    with store.reading() as tx:
        assert keys.read_page(tx, 10, 0) == (2, [PLUGIN, SYNC])
        assert keys.read_page(tx, 1, 1) == (2, [SYNC])


@pytest.mark.parametrize("search", ["Überblick", "ÜBERBLICK", "überblick", "Straßen", "STRASSEN", "aaaaAAAA", "trl_AAAAAAAA_x"])
def test_keys_are_searched_in_every_spelling_with_capitals(store: Store, search: str) -> None:
    overview = replace(PLUGIN, id=3, public="Aaaaaaaa", name="Überblick", owner="Straßenamt")
    store.write(lambda tx: keys.insert(tx, overview)).result(30)
    with store.reading() as tx:
        _, found = keys.read_page(tx, 10, 0, {"search": search})
        assert overview in found
        for nowhere in ("100%_", "a_b"):  # not even in a public part, which contains an "a"
            assert keys.read_page(tx, 10, 0, {"search": nowhere}) == (0, [])


def test_a_change_leaves_the_last_use_and_the_other_keys(store: Store) -> None:
    store.write(lambda tx: keys.record_uses(tx, [(1, "2026-01-02")])).result(30)
    store.write(lambda tx: keys.update(tx, replace(PLUGIN, name="New", grants=["blogs.delete"], last_used_at="1999"))).result(30)
    with store.reading() as tx:
        assert keys.find(tx, 1) == replace(PLUGIN, name="New", grants=["blogs.delete"], last_used_at="2026-01-02")
        assert keys.find(tx, 2) == SYNC


def test_a_last_use_only_moves_forward(store: Store) -> None:
    store.write(lambda tx: keys.record_uses(tx, [(1, "2026-01-03"), (1, "2026-01-02"), (9, "2026-01-03")])).result(30)
    with store.reading() as tx:
        assert keys.find(tx, 1) == replace(PLUGIN, last_used_at="2026-01-03")
        assert keys.find(tx, 2) == SYNC
