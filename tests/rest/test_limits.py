"""Limits: how many bad keys an address may send, and how many requests a key; counted in memory or in Redis."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import from_url

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.held_port import held_port
from tests.rest.conftest import StoppedTime
from tests.wait import wait_until
from trellis.http.api import rate_limits, shared_windows
from trellis.http.api.rate_limits import Throttle
from trellis.http.api.shared_windows import SharedWindows

pytestmark = pytest.mark.either_engine

BAD = "trl_00000000_000000000000000000000000000000000000000"
LIST = "/calendar/calendar"


def bad(api: ApiClient, address: str, times: int = 1) -> set[int]:
    return {api.get(LIST, key=BAD, address=address).status_code for _ in range(times)}


@pytest.fixture(autouse=True)
def _standing_still(request: pytest.FixtureRequest) -> None:
    """Let no window end while a test counts in it; Redis goes by its own clock."""
    if "redis" not in request.fixturenames:
        request.getfixturevalue("stopped_time")


def left(api: ApiClient, text: str) -> tuple[str, str]:
    headers = api.get(LIST, key=text).headers
    return headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]


# --- bad keys, per address ----------------------------------------------------------------------------------------


def test_an_address_with_too_many_bad_keys_has_to_wait(make_api: MakeApiClient, database: DatabaseState) -> None:
    api = make_api(bad_key_limit=3)
    assert bad(api, "203.0.113.9", 3) == {401}
    with database.unchanged():
        answer = api.post(LIST, {"name": "Late"}, address="203.0.113.9")
    document = read_refusal(answer, 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")
    assert document["errorCode"] == "1S290/D"
    wait = int(answer.headers["retry-after"])
    assert 1 <= wait <= 61
    assert (document["retryAfter"], str(wait) in document["detail"]) == (wait, True)
    assert "x-ratelimit-limit" not in answer.headers
    assert bad(api, "203.0.113.10") == {401}, "the neighbour is not throttled"
    assert api.get(LIST).status_code == 200


def test_the_throttle_ends_by_itself(make_api: MakeApiClient, stopped_time: StoppedTime) -> None:
    api = make_api(bad_key_limit=2)
    assert bad(api, "203.0.113.9", 2) == {401}
    answer = api.get(LIST, address="203.0.113.9")
    read_refusal(answer, 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")
    stopped_time.now += int(answer.headers["retry-after"])
    assert api.get(LIST, address="203.0.113.9").status_code == 200
    assert bad(api, "203.0.113.9", 2) == {401}, "it counts anew"


@pytest.mark.parametrize("hours", [-2, 2])
def test_a_clock_that_is_set_back_does_not_prolong_a_limit(
    make_api: MakeApiClient, key: MakeKey, stopped_time: StoppedTime, hours: int
) -> None:
    api, text = make_api(bad_key_limit=2), key("*", rateLimit=2)
    assert bad(api, "203.0.113.9", 2) == {401}
    assert [api.get(LIST, key=text).status_code for _ in range(3)] == [200, 200, 429]
    stopped_time.set_by = hours * 3600
    limited = read_refusal(api.get(LIST, key=text), 429, "RATE_LIMITED")
    assert 1 <= limited["retryAfter"] <= 61
    assert 0 <= limited["reset"] - stopped_time.time() <= 61, "told in the time of day as it is now"
    assert 1 <= int(api.get(LIST, address="203.0.113.9").headers["retry-after"]) <= 61
    stopped_time.now += 61
    assert api.get(LIST, key=text).status_code == 200
    assert api.get(LIST, address="203.0.113.9").status_code == 200


def test_requests_while_throttled_do_not_make_it_longer(make_api: MakeApiClient, stopped_time: StoppedTime) -> None:
    api = make_api(bad_key_limit=1)
    assert bad(api, "203.0.113.9") == {401}
    for _ in range(rate_limits.WINDOW - 1):
        stopped_time.now += 1
        assert api.get(LIST, address="203.0.113.9").status_code == 429
    stopped_time.now += 1
    assert api.get(LIST, address="203.0.113.9").status_code == 200


def test_an_address_passes_again_when_its_throttle_is_over(stopped_time: StoppedTime, monkeypatch: pytest.MonkeyPatch) -> None:
    throttle = Throttle("memory://", 1)
    asyncio.run(throttle.count_bad_key("203.0.113.8"))
    stopped_time.now += 30
    asyncio.run(throttle.count_bad_key("203.0.113.9"))
    stopped_time.now += 30
    assert [throttle.may_pass(f"203.0.113.{number}") for number in (7, 8, 9)] == [True, True, False]
    stopped_time.now += 30
    monkeypatch.setattr(rate_limits, "find_network", lambda _: pytest.fail("an address is looked at though none has to wait"))
    assert throttle.may_pass("203.0.113.9")
    asyncio.run(throttle.admit_address("203.0.113.7"))


def test_what_a_known_key_is_refused_does_not_count(make_api: MakeApiClient, community: Community, key: MakeKey) -> None:
    api = make_api(bad_key_limit=1)
    elsewhere, nobody = key("*", addresses=["192.0.2.1"]), key([])
    for _ in range(3):
        read_refusal(api.get(LIST, key=elsewhere), 403, "IP_ADDRESS_NOT_ALLOWED")
        read_refusal(api.get(LIST, key=nobody), 403, "NO_PERMISSION")
        read_refusal(api.get(f"{LIST}/999"), 404, "INVALID_ID")
    assert api.get(LIST).status_code == 200


def test_no_key_and_a_key_in_the_url_count_like_a_bad_one(make_api: MakeApiClient) -> None:
    api = make_api(bad_key_limit=3)
    read_refusal(api.get(LIST, key=None), 401, "NO_API_KEY")
    read_refusal(api.get(f"{LIST}?key=x", key=None), 403, "CANNOT_USE_KEY_AS_URL_PARAM")
    read_refusal(api.get(LIST, key=BAD), 401, "INVALID_API_KEY")
    read_refusal(api.get(LIST, key=None), 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")


def test_revoked_and_malformed_keys_count_like_unknown_ones(make_api: MakeApiClient, key: MakeKey, run: Run) -> None:
    api = make_api(bad_key_limit=3)
    text = key("*", name="Gone")
    number = next(k["id"] for k in run("keys.list")["results"] if k["name"] == "Gone")
    run("keys.revoke", number)
    for sent in (text, "nonsense", BAD):
        read_refusal(api.get(LIST, key=sent), 401, "INVALID_API_KEY")
    read_refusal(api.get(LIST), 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")


@pytest.mark.parametrize(
    ("first", "same", "other"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
        ("fe80::1%eth0", "fe80::2%eth1", "fe80:0:0:1::1"),
        ("203.0.113.9", "203.0.113.9", "203.0.113.8"),
        ("::ffff:203.0.113.9", "203.0.113.9", "::ffff:203.0.113.8"),
        ("unix", "unix", "-"),
    ],
)
def test_an_address_is_throttled_with_its_ipv6_network(make_api: MakeApiClient, first: str, same: str, other: str) -> None:
    api = make_api(bad_key_limit=1)
    assert bad(api, first) == {401}
    assert bad(api, same) == {429}
    assert bad(api, other) == {401}


# --- requests, per key --------------------------------------------------------------------------------------------


def test_a_key_has_so_many_requests_a_minute_and_every_answer_says_how_many_are_left(
    api: ApiClient, key: MakeKey, database: DatabaseState, stopped_time: StoppedTime
) -> None:
    text = key(["calendars.list", "calendars.create"], rateLimit=5)
    for remaining, (method, path, status) in enumerate(
        reversed(
            [("GET", LIST, 200), ("HEAD", LIST, 200), ("POST", LIST, 400), ("GET", "/forums/forums", 403), ("GET", "/nowhere", 404)]
        )
    ):
        answer = api(method, path, key=text)
        assert answer.status_code == status
        assert (answer.headers["x-ratelimit-limit"], answer.headers["x-ratelimit-remaining"]) == ("5", str(4 - remaining))
        assert int(answer.headers["x-ratelimit-reset"]) == stopped_time.now + 61
    with database.unchanged():
        answer = api.post(LIST, {"name": "One too many"}, key=text)
    document = read_refusal(answer, 429, "RATE_LIMITED")
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.headers["x-ratelimit-limit"] == "5"
    assert int(answer.headers["retry-after"]) == 61
    assert int(answer.headers["x-ratelimit-reset"]) == stopped_time.now + 61
    assert "5 requests per minute" in document["detail"]


def test_a_304_and_every_verb_tell_the_limits_too(api: ApiClient, community: Community) -> None:
    tag = api.get(LIST).headers["etag"]
    path = f"{LIST}/{community.meetups}"
    for answer in (api.get(LIST, headers={"If-None-Match": tag}), api.get(path), api.post(path, {"name": "x"}), api.delete(path)):
        assert answer.headers["x-ratelimit-limit"] == "6000"
    assert "x-ratelimit-limit" not in api.get(LIST, key=None).headers


def test_the_limit_starts_anew_with_the_next_window(make_api: MakeApiClient, key: MakeKey, stopped_time: StoppedTime) -> None:
    api = make_api()
    text = key("calendars.list", rateLimit=1)
    assert left(api, text) == ("1", "0")
    answer = api.get(LIST, key=text)
    read_refusal(answer, 429, "RATE_LIMITED")
    stopped_time.now += int(answer.headers["retry-after"])
    assert left(api, text) == ("1", "0")


def test_each_key_is_counted_for_itself(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(rate_limit=2)
    one, two, generous, unlimited = (key("calendars.list", rateLimit=limit) for limit in (None, None, 100, 0))
    assert [left(api, one), left(api, one), left(api, two)] == [("2", "1"), ("2", "0"), ("2", "1")]
    read_refusal(api.get(LIST, key=one), 429, "RATE_LIMITED")
    assert left(api, generous) == ("100", "99")
    for _ in range(5):
        answer = api.get(LIST, key=unlimited)
        assert answer.status_code == 200
        assert "x-ratelimit-limit" not in answer.headers


def test_zero_is_no_limit(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(rate_limit=0)
    assert "x-ratelimit-limit" not in api.get(LIST).headers
    assert left(api, key("calendars.list", rateLimit=7)) == ("7", "6")


# --- Redis --------------------------------------------------------------------------------------------------------


class Redis:
    """A Redis server of the test's own; it can be stopped and started."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        self._folder = folder
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "save": "",
            "appendonly": "no",
            "dir": self._folder,
            "loglevel": "warning",
        }
        words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen(["redis-server", *words], stdout=subprocess.DEVNULL)
        wait_until(self._listens)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 60).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """Run a real Redis."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed on this machine")
    with held_port() as port:
        server = Redis(tmp_path, port)
        try:
            yield server
        finally:
            server.stop()


def shared(make_api: MakeApiClient, redis: Redis, **changes: Any) -> tuple[ApiClient, ApiClient]:
    """Open two workers that count in the same Redis."""
    first = make_api(rate_limit_storage=redis.url, **changes)
    return first, make_api(first.key, rate_limit_storage=redis.url, **changes)


def test_in_redis_all_workers_count_together(make_api: MakeApiClient, redis: Redis, key: MakeKey) -> None:
    one, two = shared(make_api, redis, bad_key_limit=2)
    text = key("calendars.list", rateLimit=3)
    assert [left(one, text), left(two, text), left(one, text)] == [("3", "2"), ("3", "1"), ("3", "0")]
    answer = two.get(LIST, key=text)
    read_refusal(answer, 429, "RATE_LIMITED")
    assert 1 <= int(answer.headers["retry-after"]) <= 61
    assert bad(one, "203.0.113.9") == bad(two, "203.0.113.9") == {401}
    wait_until(lambda: one.get(LIST, address="203.0.113.9").status_code == 429)  # it hears within 100 ms of what the other counted
    for worker in (one, two):
        throttled = worker.get(LIST, address="203.0.113.9")
        read_refusal(throttled, 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")
        assert 1 <= int(throttled.headers["retry-after"]) <= 61


def test_when_redis_is_away_requests_are_served_and_the_log_says_so(
    make_api: MakeApiClient, redis: Redis, key: MakeKey, caplog: pytest.LogCaptureFixture
) -> None:
    one, _ = shared(make_api, redis, bad_key_limit=1)
    text = key("calendars.list", rateLimit=2)
    assert left(one, text) == ("2", "1")
    redis.stop()
    for _ in range(3):
        answer = one.get(LIST, key=text)
        assert answer.status_code == 200
        assert bad(one, "203.0.113.9") == {401}
    assert caplog.text.count("Redis does not answer") == 1, "once a minute, however many requests there are"
    redis.start()
    assert left(one, text) == ("2", "1")
    assert left(one, text) == ("2", "0")
    read_refusal(one.get(LIST, key=text), 429, "RATE_LIMITED")


def test_a_window_in_redis_that_has_lost_its_end_gets_one(make_api: MakeApiClient, redis: Redis, key: MakeKey) -> None:
    """It ends between two commands of a round trip, perhaps, and begins anew with the second one, without an end."""
    one, two = shared(make_api, redis)
    text = key("calendars.list", rateLimit=3)
    with from_url(redis.url) as known:
        known.set(name := f"trellis/key/{text.split('_')[1]}", 1)
        assert [left(one, text), left(two, text)] == [("3", "1"), ("3", "0")]
        assert 0 < known.ttl(name) <= 60
        read_refusal(one.get(LIST, key=text), 429, "RATE_LIMITED")


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An entry for each round trip to Redis that has begun."""
    begun: list[None] = []
    run_round_trip = SharedWindows._run_round_trip

    async def counted(windows: SharedWindows) -> None:
        begun.append(None)
        await run_round_trip(windows)

    monkeypatch.setattr(SharedWindows, "_run_round_trip", counted)
    return begun


def test_nobody_waits_for_a_redis_that_takes_connections_and_says_nothing(
    trips: list[None], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_windows, "_PATIENCE", 0.05)

    async def count(port: int) -> list[tuple[int, float]]:
        windows = SharedWindows(f"redis://127.0.0.1:{port}/0", 60)
        async with asyncio.timeout(60):
            found = [await windows.count("a", 0), *await asyncio.gather(*(windows.count(name, 0) for name in "abc"))]
            await windows.close()
        return found

    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert asyncio.run(count(silent.getsockname()[1])) == [(0, 60.0)] * 4
    assert len(trips) == 1, "the others do not try again at once"
    assert caplog.text.count("Redis does not answer") == 1


def test_counts_are_told_together_and_no_process_is_further_behind_than_a_hundredth_of_the_limit(
    make_api: MakeApiClient, redis: Redis, key: MakeKey
) -> None:
    workers = shared(make_api, redis)
    text = key("calendars.list", rateLimit=200)
    served = sum(workers[number % 2].get(LIST, key=text).status_code == 200 for number in range(230))
    assert 200 <= served <= 200 + 2 * 2


def test_what_was_not_yet_told_is_told_in_one_round_trip(redis: Redis, trips: list[None]) -> None:
    async def count() -> tuple[int, int, list[int]]:
        here, there = SharedWindows(redis.url, 60), SharedWindows(redis.url, 60)
        own = [(await here.count(name, 1000))[0] for _ in range(100) for name in ("a", "b")]
        first = len(trips)
        await here.close()
        told = [(await there.count(name, 1000))[0] for name in ("a", "b")]
        await there.close()
        return first, own[-1], told

    assert asyncio.run(count()) == (2, 100, [101, 101])
    assert len(trips) == 5, "two windows begin here and two there, and what was left is told at once"
