"""The pages on security: the tests that they name are there, and the table of requirements is whole."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ASVS: Final = ROOT / "docs" / "asvs.md"
NAMED: Final = re.compile(r"`(tests/[a-z0-9_/]+\.py)?(?:::(test_[a-z0-9_]+))?`")
SOURCE: Final = re.compile(r"`([a-z0-9_/]+\.(?:py|html|js))`")
ROW: Final = re.compile(r"\| (\d+)\.(\d+)\.(\d+) \| [^|]+ \| (met|not applicable|left) \| [^|]+ \|")
# How many requirements of levels 1 and 2 each chapter of version 5.0.0 has.
CHAPTERS: Final = (27, 11, 19, 10, 9, 35, 18, 7, 7, 29, 14, 9, 13, 9, 13, 16, 7)


@pytest.mark.parametrize("page", ["asvs.md", "security-tests.md"])
def test_every_test_that_is_named_is_there(page: str) -> None:
    found = 0
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        file = ""
        for path, name in NAMED.findall(line):
            file = path or file
            if not file and not name:
                continue
            assert (ROOT / file).is_file(), (line, file)
            assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)
            found += bool(name)
    assert found > 10


def test_every_file_that_is_named_is_there() -> None:
    named = SOURCE.findall(ASVS.read_text(encoding="utf-8"))
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).is_file() or (ROOT / "src" / "trellis" / name).is_file(), name


def test_no_requirement_is_missing() -> None:
    text = ASVS.read_text(encoding="utf-8")
    rows = [(int(chapter), int(section), int(number), status) for chapter, section, number, status in ROW.findall(text)]
    assert [row[:3] for row in rows] == sorted({row[:3] for row in rows})
    assert tuple(Counter(row[0] for row in rows)[chapter] for chapter in range(1, 18)) == CHAPTERS
    counted = Counter(row[3] for row in rows)
    told = f"Of {len(rows)}, {counted['met']} are met, {counted['not applicable']} do not apply and {counted['left']} are left."
    assert told in " ".join(text.split())
