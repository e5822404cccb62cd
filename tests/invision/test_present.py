"""What is here already, however much of it there is."""

import pytest

from tests.community import Community
from tests.fixture_types import Run
from trellis.invision import choose_known, read_present
from trellis.kinds import KINDS
from trellis.store.nodes import bounded

LONGEST = "x" * 20_000
ROOM = 2_200_000  # bytes: for a hundred such texts


def test_nodes_with_very_long_texts_are_read(community: Community, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", ROOM)
    top = run("forums.create", name="Top", description=LONGEST, externalId="top")["id"]
    for _ in range(7):
        run("forums.copy", top, withChildren=True, parentId=top)
    last = run("forums.create", name="Last", externalId="last")
    present = read_present(lambda name, raw: run(name, **raw), choose_known(KINDS))
    assert present.nodes["forums"].keys() == {"top", "last"}
    assert present.nodes["forums"]["last"] == last
