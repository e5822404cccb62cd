"""No secret is kept anywhere: keys and passwords are planted wherever a caller can put them, and then everything is searched."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.api_client import ApiClient
from tests.api_fixtures import MakeService
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from trellis.core.keys.secret import new_secret, parse_secret
from trellis.settings import Settings

PASSWORD = "correct horse battery staple"
UNKNOWN = str(new_secret())  # of the right form, and nobody's


def everything_kept(settings: Settings) -> Iterator[bytes]:
    """Return every byte of the database: the files of SQLite, log included, or each row of each table of PostgreSQL."""
    url = settings.database_url
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        for part in file.parent.glob(f"{file.name}*"):
            yield part.read_bytes()
        return
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT schemaname, tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        assert len(tables) >= 7
        for schema, table in tables:
            rows = sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, table))
            for (row,) in connection.execute(rows):
                yield row.encode()


def encoded(text: str) -> str:
    return "".join(f"%{ord(one):02X}" for one in text)


def plant(service: Service, good: str, planted: str, community: Community) -> list[int]:
    """Put a key everywhere that a request has room for text; give the statuses."""
    basic = base64.b64encode(f"{good}:{planted}".encode()).decode()
    forum = f"/forums/forums/{community.staff}"
    requests: list[tuple[str, str, dict[str, str], dict[str, Any]]] = [
        ("GET", f"/forums/forums?key={planted}", {}, {}),
        ("GET", f"/forums/forums?search={planted}", {}, {}),
        ("GET", f"/forums/forums/{planted}", {}, {}),
        ("GET", f"/{planted}/{planted}", {}, {}),
        ("GET", f"/{encoded(planted)}", {}, {}),
        ("GET", f"/forums/forums/{encoded(planted).replace('%', '%25')}", {}, {}),
        ("GET", f"/forums/{planted[:20]}{encoded(planted[20:])}", {}, {}),
        ("POST", forum, {"X-Audit-Log-Reason": f"for {encoded(planted).lower()}."}, {"json": {"minContent": 5}}),
        ("POST", forum, {"X-Request-Id": encoded(planted)}, {"json": {"minContent": 6}}),
        ("POST", "/calendar/calendar", {"Idempotency-Key": encoded(planted)}, {"json": {"name": "Kept too"}}),
        ("GET", f"/forums/forums?{planted}={planted}", {}, {}),
        (
            "GET",
            "/forums/forums",
            {"X-API-Key": planted, "Cookie": planted, "User-Agent": planted, "Referer": f"https://x.example/?key={planted}"},
            {},
        ),
        ("GET", "/forums/forums", {"Authorization": f"Basic {basic}"}, {}),
        ("GET", "/forums/forums", {"Authorization": f"Bearer {planted}"}, {}),
        ("GET", "/forums/forums", {"Authorization": f"Digest {planted}"}, {}),
        ("GET", "/forums/forums", {"If-None-Match": planted, "Origin": planted, "Accept": planted}, {}),
        ("POST", forum, {"X-Request-Id": planted}, {"json": {"minContent": 1}}),
        ("POST", forum, {"X-Request-Id": f"id-{planted}"}, {"json": {"minContent": 2}}),
        ("POST", forum, {"X-Audit-Log-Reason": f"because of {planted}."}, {"json": {"minContent": 3}}),
        ("POST", forum, {"If-Match": planted}, {"json": {"minContent": 4}}),
        ("POST", "/calendar/calendar", {"Idempotency-Key": planted}, {"json": {"name": "Kept"}}),
        ("POST", forum, {}, {"json": {"password": planted}}),
        ("POST", forum, {}, {"json": {"password": PASSWORD}}),
        ("POST", forum, {}, {"json": {planted: planted, "type": planted, "theme": planted, "permissions": {planted: planted}}}),
        ("POST", forum, {"Content-Type": planted}, {"content": planted}),
        ("POST", forum, {"Content-Type": "application/json"}, {"content": planted}),
        ("DELETE", f"{forum}?deleteChildrenOrMove={planted}", {}, {}),
        (planted[:12].upper().replace("_", "-"), forum, {"Content-Type": "text/plain"}, {"content": planted}),
    ]
    return [
        service.call(
            method, path, None if "Authorization" in headers or "X-API-Key" in headers else good, headers, **body
        ).status_code
        for method, path, headers, body in requests
    ]


def test_no_key_and_no_password_is_kept_in_the_database_or_the_logs(
    serve: MakeService, settings: Settings, community: Community, key: MakeKey, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    good, other = key("*"), key("*", name="Other")
    rotated = run("keys.rotate", 2, overlapDays=7)["key"]
    service = serve(bad_key_limit=1000, key_in_url=True)
    for planted in (good, other, rotated, UNKNOWN):
        statuses = plant(service, good, planted, community)
        assert {status // 100 for status in statuses} == {2, 4}
    assert service.terminate() == 0
    secret = parse_secret(good)
    assert secret is not None
    kept = list(everything_kept(settings))
    assert sum(secret.digest.encode() in part for part in kept) >= 1, "the search finds what is there"
    assert sum(b"[hidden]" in part for part in kept) >= 1
    for text in (good, other, rotated, UNKNOWN):
        hidden = text[13:45]
        assert len(hidden) == 32
        for percent in ("%", "%25"):
            half = encoded(hidden[16:]).replace("%", percent)
            assert not [part for part in kept if half.encode() in part or half.lower().encode() in part]
        assert not [part for part in kept if hidden.encode() in part]
        assert hidden not in service.output
        assert hidden not in caplog.text
    assert not [part for part in kept if PASSWORD.encode() in part]
    assert PASSWORD not in service.output


def test_a_key_shown_once_is_shown_nowhere_again(settings: Settings, run: Run, database: Any) -> None:
    made = run("keys.create", name="Once", grants=["*"])
    shown = run("keys.rotate", made["id"], overlapDays=1)
    told = str([run("keys.get", made["id"]), run("keys.list"), run("events.list"), database.rows()])
    for text in (made["key"], shown["key"]):
        assert text[13:45] not in told
        assert text[:12] in told, "its public part is how people tell keys apart"


def test_no_answer_repeats_a_key_in_what_it_says_of_a_request(api: ApiClient) -> None:
    planted = str(new_secret())
    for path in (
        f"/{planted}",
        f"/{encoded(planted)}",
        f"/forums/forums/{planted}",
        f"/forums/forums?sortBy={planted}&{planted}=1",
    ):
        answer = api.get(path)
        assert answer.status_code >= 400
        assert planted[13:29] not in answer.text
        assert encoded(planted[13:29]) not in answer.text
        assert "[hidden]" in answer.text or "…" in answer.text
