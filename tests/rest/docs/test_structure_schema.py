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
from trellis.core.operation import Call
from trellis.core.structure import build_schema, read_document
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


def test_it_tells_what_a_document_must_not_have(run: Run, community: Community) -> None:
    del community
    forum = run("structure.export", sections=["forums"])["forums"][0]
    head = {"format": "trellis/1", "name": "garden"}
    assert _faults(head | {"forums": [forum | {"colour": "red"}]}) == ["$.forums[0]"]
    assert _faults(head | {"forums": [{"name": "Beds"}]}) == ["$.forums[0]"]
    assert _faults(head | {"galleries": []}) == ["$"]
    assert _faults(head | {"format": "trellis/2"}) == ["$.format"]
