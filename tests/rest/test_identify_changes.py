"""A change of a key takes effect on the very next request, in this process and in every other one."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from tests.api_client import ApiClient, read_refusal
from tests.community import Community
from tests.fixture_types import Clock, MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.keys.secret import parse_secret
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.engine import Transaction

LIST = "/forums/forums"


@pytest.fixture
def workers(api: ApiClient, settings: Settings, clock: Clock) -> Iterator[list[ApiClient]]:
    """Two workers on one database, as they are in two processes: nothing but the database in common."""
    other = compose(settings, clock=clock)
    second = ApiClient(Application(settings, other), api.key)
    yield [api, second]
    second.close()
    other.store.close()


def number_of(run: Run, text: str) -> int:
    secret = parse_secret(text)
    assert secret is not None
    (number,) = [key["id"] for key in run("keys.list", perPage=1000)["results"] if key["public"] == f"trl_{secret.public}"]
    return int(number)


def statuses(workers: list[ApiClient], text: str, **more: str) -> set[int]:
    return {worker.get(LIST, key=text, **more).status_code for worker in workers}


def test_a_revoked_key_is_no_key_any_more(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    text = key("forums.*")
    assert statuses(workers, text) == {200}
    run("keys.revoke", number_of(run, text), reason="Left the team")
    for worker in workers:
        document = read_refusal(worker.get(LIST, key=text), 401, "INVALID_API_KEY")
        assert "revoked" not in document["detail"]
        assert "Left" not in document["detail"]


def test_a_key_ends_at_its_expiry_to_the_second(workers: list[ApiClient], key: MakeKey, clock: Clock, run: Run) -> None:
    text = key("forums.*", expires="1h")
    clock.move(minutes=59, seconds=59)
    assert statuses(workers, text) == {200}
    clock.move(seconds=1)
    for worker in workers:
        read_refusal(worker.get(LIST, key=text), 401, "INVALID_API_KEY")
    run("keys.update", number_of(run, text), expires="1h")
    assert statuses(workers, text) == {200}
    run("keys.update", number_of(run, text), expires=None)
    clock.move(days=10_000)
    assert statuses(workers, text) == {200}


def test_a_grant_given_or_taken_holds_from_the_next_request_on(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    text = key([])
    number = number_of(run, text)
    for change, status in (
        ({"grant": "forums.list"}, 200),
        ({"ungrant": "forums.list"}, 403),
        ({"grants": ["*"]}, 200),
        ({"grants": []}, 403),
    ):
        run("keys.update", number, **change)
        assert statuses(workers, text) == {status}, change


def test_addresses_and_limits_hold_from_the_next_request_on(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    text = key("forums.list")
    number = number_of(run, text)
    assert statuses(workers, text) == {200}
    run("keys.update", number, addresses=["192.0.2.1"])
    assert statuses(workers, text) == {403}
    assert statuses(workers, text, address="192.0.2.1") == {200}
    run("keys.update", number, addresses=[], rateLimit=5000)
    assert {worker.get(LIST, key=text).headers["x-ratelimit-limit"] for worker in workers} == {"5000"}


def test_a_rotated_key_lives_on_beside_the_new_one_for_as_long_as_was_said(
    workers: list[ApiClient], key: MakeKey, run: Run, clock: Clock
) -> None:
    old = key("forums.*")
    new = run("keys.rotate", number_of(run, old), overlapDays=2)["key"]
    assert new != old
    assert statuses(workers, old) == statuses(workers, new) == {200}
    clock.move(days=2, seconds=-1)
    assert statuses(workers, old) == {200}
    clock.move(seconds=1)
    assert statuses(workers, old) == {401}
    assert statuses(workers, new) == {200}


def test_a_key_rotated_without_overlap_ends_at_once(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    old = key("forums.*")
    assert statuses(workers, old) == {200}
    new = run("keys.rotate", number_of(run, old))["key"]
    assert statuses(workers, old) == {401}
    assert statuses(workers, new) == {200}


def test_a_second_rotation_ends_the_first_secret(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    first = key("forums.*")
    number = number_of(run, first)
    second = run("keys.rotate", number, overlapDays=7)["key"]
    third = run("keys.rotate", number, overlapDays=7)["key"]
    assert [statuses(workers, text) for text in (first, second, third)] == [{401}, {200}, {200}]


def test_a_revoked_key_takes_its_old_secret_with_it(workers: list[ApiClient], key: MakeKey, run: Run) -> None:
    old = key("forums.*")
    number = number_of(run, old)
    new = run("keys.rotate", number, overlapDays=7)["key"]
    run("keys.revoke", number)
    assert statuses(workers, old) == statuses(workers, new) == {401}


def test_a_running_service_sees_what_another_process_changes(
    service: Service, community: Community, key: MakeKey, run: Run, engine: str
) -> None:
    """Keys on the next request; records too on SQLite, and on PostgreSQL as soon as the notification has come."""
    text = key([])
    number = number_of(run, text)

    def sees(status: int, message: str) -> None:
        answer = service.call("GET", LIST, text)
        assert (answer.status_code, answer.json().get("errorMessage", "")) == (status, message)

    def renamed() -> bool:
        return bool(service.call("GET", LIST, text).json()["results"][0]["name"] == "Renamed elsewhere")

    sees(403, "NO_PERMISSION")
    run("keys.update", number, grant="forums.list")
    sees(200, "")
    run("keys.update", number, addresses=["192.0.2.1"])
    sees(403, "IP_ADDRESS_NOT_ALLOWED")
    run("keys.update", number, addresses=["127.0.0.0/8"])
    sees(200, "")
    run("forums.update", community.news, name="Renamed elsewhere")
    wait_until(renamed, at_once=engine == "sqlite")
    run("keys.revoke", number)
    sees(401, "INVALID_API_KEY")


@pytest.mark.parametrize("is_read", [False, True], ids=["write", "counted read"])
def test_what_waits_for_the_writer_is_judged_by_the_addresses_of_then(
    api: ApiClient, gate: Gate, key: MakeKey, run: Run, *, is_read: bool
) -> None:
    text = key("forums.*", bounds={"forums.list": {"perDay": 5}})
    number = number_of(run, text)
    began, go = Event(), Event()

    def hold(_: Transaction) -> None:
        began.set()
        go.wait(30)

    gate.store.write(hold, quiet=True)
    assert began.wait(30)
    with ThreadPoolExecutor(1) as pool:
        changed = gate.submit(Call("keys.update", TERMINAL, {"addresses": ["192.0.2.1"]}, number))
        late = pool.submit(api, "GET" if is_read else "POST", LIST, key=text, **({} if is_read else {"json": {"name": "Late"}}))
        wait_until(lambda: gate.store.writer.waiting == 2)
        go.set()
        changed.result(30)
        read_refusal(late.result(30), 403, "IP_ADDRESS_NOT_ALLOWED")
    assert run("forums.list")["totalResults"] == 0
