"""Exporting while others change the community."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Run
from trellis.invision import ReadingFailed, export_answers, write_saved
from trellis.kinds import KINDS


@pytest.mark.parametrize("created", [0, 1, 2])
def test_no_record_is_left_out_where_another_is_deleted_meanwhile(
    community: Community, run: Run, tmp_path: Path, created: int
) -> None:
    def export() -> Iterator[tuple[str, Any]]:
        for name, answer in export_answers(lambda operation, raw: run(operation, **raw), KINDS, per_page=3):
            yield name, answer
            if name == "forums/forums/page-1":
                run("forums.delete", answer["results"][-1]["id"], deleteChildrenOrMove=-1)
                for number in range(created):
                    run("forums.create", name=f"New {number}")

    with pytest.raises(ReadingFailed, match="Some forums were deleted while they were read"):
        write_saved(tmp_path / "out", export())
    assert not (tmp_path / "out").exists()
