"""A lack of memory is no damage: the check ends, and repairs nothing that is sound."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from tests.fixture_types import Run
from trellis.errors import Refused
from trellis.store.engine import transaction


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # PostgreSQL's driver parses what is in the columns
def test_fields_for_which_there_is_no_memory_are_not_replaced(engine: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("forums.create", name="Reading room", description="<p>Quiet, please.</p>")

    def lack(text: str) -> Any:
        if "Quiet" in text:
            raise orjson.JSONDecodeError("Not enough memory to allocate buffer for parsing", "", 0)
        return orjson.loads(text)

    with monkeypatch.context() as patch:
        patch.setattr(
            transaction, "orjson", SimpleNamespace(loads=lack, dumps=orjson.dumps, JSONDecodeError=orjson.JSONDecodeError)
        )
        with pytest.raises(Refused, match="too little memory"):
            run("check.repair")
    assert run("forums.get", made["id"])["description"] == "<p>Quiet, please.</p>"
