"""Several processes on one database: what one changes the others know, in every trouble too."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import psycopg
import pytest

from tests.api_fixtures import MakeService
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.settings import Settings

ROUNDS: Final = 10
FORUMS: Final = "/forums/forums"
LISTENERS: Final = "FROM pg_stat_activity WHERE application_name = 'trellis listener' AND datname = current_database()"
postgresql_only = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


@pytest.fixture
def services(serve: MakeService) -> tuple[Service, Service]:
    """Two processes that serve the same database."""
    return serve(rate_limit=0), serve(rate_limit=0)


@pytest.fixture
def database(settings: Settings) -> Iterator["psycopg.Connection[Any]"]:
    """A connection that Trellis knows nothing of."""
    with psycopg.connect(settings.database_url, autocommit=True) as connection:
        yield connection


def name(service: Service, key: str, forum: int) -> str:
    return str(service.call("GET", f"{FORUMS}/{forum}", key).json()["name"])


def has_name(service: Service, key: str, forum: int, wanted: str) -> bool:
    return name(service, key, forum) == wanted


def status(service: Service, key: str) -> int:
    return service.call("GET", FORUMS, key).status_code


def wait_for_refusal(service: Service, key: str) -> None:
    wait_until(lambda: status(service, key) == 401)


def test_a_write_is_seen_at_once_where_it_was_made_and_then_elsewhere(
    services: tuple[Service, Service], community: Community, key: MakeKey, engine: str
) -> None:
    text = key("*")
    for number in range(ROUNDS):
        here, there = services if number % 2 else services[::-1]
        for service in (here, there, here, there):  # from now on it is in memory
            name(service, text, community.news)
        wanted = f"News {number}"
        assert here.call("POST", f"{FORUMS}/{community.news}", text, json={"name": wanted}).status_code == 200
        assert name(here, text, community.news) == wanted
        there_too = partial(has_name, there, text, community.news, wanted)
        wait_until(there_too, at_once=engine == "sqlite")  # on PostgreSQL a notification has to come first


@contextmanager
def losing_connections(settings: Settings) -> Iterator[None]:
    """Break the connections that notifications come over, again and again."""
    enough = threading.Event()

    def lose() -> None:
        with psycopg.connect(settings.database_url, autocommit=True) as connection:
            while not enough.wait(0.02):
                connection.execute(f"SELECT pg_terminate_backend(pid) {LISTENERS}")

    losing = threading.Thread(target=lose)
    losing.start()
    try:
        yield
    finally:
        enough.set()
        losing.join()


@postgresql_only
def test_a_revoked_key_is_refused_while_nobody_can_listen(
    services: tuple[Service, Service], settings: Settings, key: MakeKey, run: Run
) -> None:
    texts = [key("forums.list") for _ in range(3)]
    assert [status(service, text) for service in services for text in texts] == [200] * 6
    with losing_connections(settings):
        for number, text in enumerate(texts, 1):
            time.sleep(0.3)  # revoke while a connection is being made anew
            assert [status(service, text) for service in services] == [200, 200]
            run("keys.revoke", number)
            for service in services:
                wait_for_refusal(service, text)


@postgresql_only
def test_a_revoked_key_is_refused_when_the_notification_is_lost(
    services: tuple[Service, Service], database: "psycopg.Connection[Any]", key: MakeKey
) -> None:
    """The row says that the data have changed, and nobody told."""
    for number in (1, 2, 3):
        text = key("forums.list")
        time.sleep(number / 7)  # meet the processes at different points between their readings of the row
        assert [status(service, text) for service in (*services, *services)] == [200] * 4
        with database.transaction():
            database.execute("UPDATE api_keys SET revoked_at = '2020-01-01T00:00:00.000Z' WHERE id = %s", (number,))
            database.execute("UPDATE counters SET last = last + 1 WHERE name = 'data version'")
        for service in services:
            wait_for_refusal(service, text)


def test_workers_of_one_service_know_of_each_others_writes(
    serve: MakeService, community: Community, key: MakeKey, run: Run
) -> None:
    """Each request comes over a connection of its own, so that any worker may take it."""
    service, text = serve(options=("--workers", "2"), rate_limit=0), key("*")
    service.client.headers["Connection"] = "close"

    def told() -> set[str]:
        return {name(service, text, community.news) for _ in range(6)}

    for number in range(ROUNDS // 2):
        wanted = f"News {number}"
        assert service.call("POST", f"{FORUMS}/{community.news}", text, json={"name": wanted}).status_code == 200
        wait_until(lambda wanted=wanted: told() == {wanted})  # type: ignore[misc]  # of each turn its own
    run("keys.revoke", 1)
    wait_until(lambda: {status(service, text) for _ in range(6)} == {401})
