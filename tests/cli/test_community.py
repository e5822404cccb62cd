"""What all commands do with the community that they open."""

import pytest

from tests.fixture_types import Run
from trellis.cli.community import list_all
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call


def test_no_record_is_left_out_where_another_is_deleted_meanwhile(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.cli.community.MOST_PER_PAGE", 2)
    made = [run("groups.create", name=name)["id"] for name in ("First", "Second", "Third", "Fourth", "Fifth")]
    doomed, ask = made[:], gate.run

    def delete_another(call: Call) -> Result:
        result = ask(call)
        if call.operation == "groups.list" and len(doomed) > 3:
            run("groups.delete", doomed.pop(0))
        return result

    monkeypatch.setattr(gate, "run", delete_another)
    found = [one["id"] for one in list_all(gate, "groups.list")]
    assert len(doomed) == 3
    assert found == sorted(set(found))
    assert set(doomed) <= set(found)
