"""The JSON Schema of structure documents: valid, current, served to anybody, and what an export keeps to."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types of its own

from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import Run
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.keys import SETTINGS
from trellis.core.operation import Call
from trellis.core.structure import build_schema, read_document
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings

SNAPSHOT: Final = Path(__file__).parents[3] / "docs" / "structure.schema.json"
SCHEMA: Final = build_schema(KINDS)


def _faults(document: Any) -> list[str]:
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(document)]


def test_it_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_it_is_the_one_in_the_repository() -> None:
    written = orjson.dumps(SCHEMA, option=orjson.OPT_INDENT_2) + b"\n"
    assert SNAPSHOT.read_bytes() == written, "The documents have changed: run `make snapshot`, and look at the difference."


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_it_is_served_without_a_key(make_api: MakeApiClient) -> None:
    api = make_api("")
    response = api.get("/structure.schema.json", key=None)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/schema+json"
    assert response.json() == orjson.loads(orjson.dumps(SCHEMA))
    again = api.get("/structure.schema.json", key=None, headers={"If-None-Match": response.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.usefixtures("community")
def test_an_exported_document_keeps_to_it(run: Run) -> None:
    document = run("structure.export")
    assert len(document["forums"]) == 4
    assert _faults(document) == []
    assert _faults(read_document(run("structure.export", format="yaml").text)) == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("public_url", ["https://api.example/community", None])
def test_an_export_names_its_address_where_it_is_known(settings: Settings, public_url: str | None) -> None:
    gate = compose(replace(settings, public_url=public_url))
    text = gate.run(Call("structure.export", TERMINAL, {"format": "yaml"})).value.text
    gate.store.close()
    named = f"# yaml-language-server: $schema={public_url}/api/structure.schema.json\n"
    assert text.startswith(named) if public_url else "$schema" not in text


@pytest.mark.either_engine
def test_it_tells_what_a_document_must_not_have(run: Run, community: Community) -> None:
    del community
    forum = run("structure.export", sections=["forums"])["forums"][0]
    head = {"format": "trellis/1", "name": "garden"}
    assert _faults(head | {"forums": [forum | {"colour": "red"}]}) == ["$.forums[0]"]
    assert _faults(head | {"forums": [{"name": "Beds"}]}) == ["$.forums[0]"]
    assert _faults(head | {"galleries": []}) == ["$"]
    assert _faults(head | {"format": "trellis/2"}) == ["$.format"]


_BOUND: Final = {"level": "propose", "under": ["forums:1"], "until": "2026-12-31T00:00:00Z", "perDay": 5, "dryRunOnly": True}
_KEY: Final[dict[str, Any]] = {  # a value of each setting
    "name": "Sync",
    "owner": "Mira Holm",
    "note": "Runs at night.\nOn shop1.",
    "grants": ["forums.list", "forums.update", "events.list"],
    "bounds": {"forums.update": _BOUND, "events.list": {"ownOnly": True, "until": None, "perDay": None}, "forums.list": None},
    "expires": "2026-12-31",
    "addresses": ["192.0.2.0/24", "2001:db8::1"],
    "rateLimit": 60,
    "perDay": None,
    "logRequests": False,
    "dialect": "invision",
}


def _document_of(key: dict[str, Any]) -> dict[str, Any]:
    return {"format": "trellis/1", "name": "garden", "keys": [key]}


@pytest.mark.either_engine
def test_what_a_key_may_have_it_may_have_when_it_is_applied(run: Run) -> None:
    assert set(_KEY) == {field.name for field in SETTINGS}
    for member, value in _KEY.items():
        key = {"name": "Sync", "grants": _KEY["grants"], member: value}
        assert _faults(_document_of(key)) == [], member
        assert run("structure.plan", document=_document_of(key))["counts"]["create"] == 1, member


@pytest.mark.either_engine
def test_what_a_key_must_not_have_is_refused_when_it_is_applied(run: Run) -> None:
    wrong: list[tuple[str, Any, str]] = [
        ("name", "", "name"),
        ("name", "x" * 101, "name"),
        ("owner", 12, "owner"),
        ("note", "x" * 1001, "note"),
        ("grants", {}, "grants"),
        ("bounds", {"forums.list": {"until": "7d"}}, "bounds['forums.list'].until"),
        ("bounds", {"forums.list": {"perDay": -1}}, "bounds['forums.list'].perDay"),
        ("bounds", {"forums.list": {"since": None}}, "bounds['forums.list']"),
        ("expires", "90d", "expires"),
        ("expires", 2026, "expires"),
        ("addresses", ["192.0.2.1"] * 101, "addresses"),
        ("rateLimit", "many", "rateLimit"),
        ("perDay", 1.5, "perDay"),
        ("logRequests", "perhaps", "logRequests"),
        ("dialect", "esperanto", "dialect"),
    ]
    for member, value, path in wrong:
        key = {"name": "Sync", "grants": ["forums.list"], member: value}
        assert _faults(_document_of(key)) == [f"$.keys[0].{path}"]
        with pytest.raises(Refused, match="INVALID_DOCUMENT"):
            run("structure.plan", document=_document_of(key))
