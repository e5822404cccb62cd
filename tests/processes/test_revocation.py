"""What is taken from a key or an administrator in one process holds in every process with the very next request."""

import pytest

from tests.api_fixtures import MakeService
from tests.fixture_types import Run
from tests.service_process import Service

TIMES = 4


@pytest.fixture
def services(serve: MakeService) -> tuple[Service, Service]:
    """Two processes on one database, on either engine."""
    return serve(), serve()


def _status(service: Service, key: str) -> int:
    return service.call("GET", "/forums/forums", key).status_code


def test_what_is_taken_from_a_key_is_missing_in_every_process_from_the_acknowledgement_on(
    services: tuple[Service, Service], run: Run
) -> None:
    def statuses(key: str, times: int = 1) -> list[int]:
        return [_status(service, key) for service in services * times]

    for _ in range(TIMES):
        made = run("keys.create", name="Plugin", grants=["forums.list"])
        assert statuses(made["key"], 3) == [200] * 6
        run("keys.update", made["id"], ungrant=["forums.list"])
        assert statuses(made["key"]) == [403, 403]
        run("keys.update", made["id"], grant=["forums.list"])
        assert statuses(made["key"], 3) == [200] * 6
        rotated = run("keys.rotate", made["id"])["key"]
        assert statuses(made["key"]) == [401, 401]
        assert statuses(rotated, 3) == [200] * 6
        run("keys.revoke", made["id"])
        assert statuses(rotated) == [401, 401]


def test_paused_agents_are_refused_by_every_process_from_the_acknowledgement_on(
    services: tuple[Service, Service], run: Run
) -> None:
    made = [run("keys.create", name=name, preset="agent", expires=None) for name in ("Gardener", "Porter")]
    for _ in range(3):  # refused requests of an address are counted
        for service in services * 2:
            assert [_status(service, one["key"]) for one in made] == [200, 200]
        run("keys.pause_preset", preset="agent")
        assert [_status(service, one["key"]) for service in services for one in made] == [401] * 4
        for one in made:
            run("keys.resume", one["id"])
