"""Requests for which there is too little memory: they are refused, change nothing, and leave the service as it was."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.database_state import DatabaseState
from tests.fixture_types import Events
from trellis.core import batch
from trellis.core.gate import Gate
from trellis.rest import app
from trellis.store import sqlite
from trellis.store.engine.changes import Changes

FORUM: Final = {"name": "Reading room", "description": "Quiet, please. " * 1000}


@pytest.fixture
def api(make_api: MakeApiClient) -> ApiClient:
    return make_api(answer_cache=0)


def lack(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError


def check_told(caplog: pytest.LogCaptureFixture) -> None:
    told = "\n".join(record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR)
    assert "memory" in told
    assert not any(record.exc_info for record in caplog.records), "a lack of memory is no bug, whose traceback somebody needs"


def test_a_write_without_memory_is_refused_and_the_next_one_is_made(
    api: ApiClient, database: DatabaseState, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with database.unchanged(), monkeypatch.context() as patch:
        patch.setattr(Gate, "_run_write", lack)
        document = read_refusal(api.post("/forums/forums", FORUM), 503, "BUSY")
    assert document["detail"].startswith("The service has too little memory for this at present.")
    check_told(caplog)
    assert api.post("/forums/forums", FORUM).status_code == 201


def test_a_write_that_runs_out_of_memory_half_way_is_rolled_back(
    api: ApiClient, database: DatabaseState, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"operations": [{"operation": "forums.create", "body": FORUM}]}
    with database.unchanged(), monkeypatch.context() as patch:
        patch.setattr(batch, "_count_records", lack)  # the forum has been inserted by then
        read_refusal(api.post("/core/batch", sent), 503, "BUSY")
    assert api.post("/core/batch", sent).status_code == 200


@pytest.mark.parametrize("path", ["/forums/forums", "/forums/forums/tree", "/core/structure"])
def test_a_read_without_memory_is_refused_and_the_next_one_is_answered(
    api: ApiClient, path: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "_read", lack)
        read_refusal(api.get(path), 503, "BUSY")
    check_told(caplog)
    assert api.get(path).status_code == 200


def test_a_write_that_was_made_is_told_as_made_even_without_memory_for_its_response(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, events: Events
) -> None:
    """Who takes it for refused would make it twice."""
    before = len(events())
    with monkeypatch.context() as patch:
        patch.setattr(app, "respond_to_write", lack)
        document = read_refusal(api.post("/forums/forums", FORUM), 503, "BUSY")
    assert document["detail"].startswith("This write was made")
    check_told(caplog)
    assert len(events()) == before + 1


@contextmanager
def no_memory_in_the_library() -> Iterator[None]:
    import apsw  # noqa: PLC0415  # it is not there on every machine

    apsw.hard_heap_limit(apsw.memory_used())
    try:
        yield
    finally:
        apsw.hard_heap_limit(0)


@pytest.mark.skipif(not sqlite.HAS_APSW, reason="the interpreter's library has no bound that can be set")
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_what_the_library_has_no_memory_for_is_refused_too(
    engine: str, api: ApiClient, database: DatabaseState, caplog: pytest.LogCaptureFixture
) -> None:
    forum = api.post("/forums/forums", FORUM).json()
    with database.unchanged():
        for _ in range(3):
            with no_memory_in_the_library():
                read = api.get(f"/forums/forums/{forum['id']}")
                written = api.post("/forums/forums", FORUM | {"description": "x" * 90_000})
            for answer in (read, written):
                assert "too little memory" in read_refusal(answer, 503, "BUSY")["detail"]
    check_told(caplog)
    assert api.get(f"/forums/forums/{forum['id']}").json() == forum
    assert api.post("/forums/forums", FORUM).status_code == 201


def test_a_change_that_could_not_be_noted_is_seen_all_the_same(make_api: MakeApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers in memory that show what was changed must not outlive it."""
    api = make_api()
    path = f"/forums/forums/{api.post('/forums/forums', FORUM).json()['id']}"
    for _ in range(2):
        assert api.get(path).json()["name"] == "Reading room"
    with monkeypatch.context() as patch:
        patch.setattr(Changes, "add", lack)
        answer = api.post(path, {"name": "Quiet room"})
        assert answer.status_code == 200 or "this write may have been made" in read_refusal(answer, 503, "BUSY")["detail"]
        assert api.get(path).json()["name"] == "Quiet room"
    assert api.get(path).json()["name"] == "Quiet room"
