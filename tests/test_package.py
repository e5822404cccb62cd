"""The shape of the package: folders and modules of a size that can be read, and words that need no introduction."""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

import trellis

PACKAGE: Final = Path(trellis.__file__).parent
MOST_MODULES: Final = 14
MOST_LINES: Final = 400
# Names that only this project used for what has a common one: see the glossary for the words to use.
COINED: Final = (
    *("Roof", "House", "Visit", "Courier", "Recall", "Arrivals", "Notices", "Shelf", "Shelves", "Spot", "Family"),
    *("barren", "_?led_astray", "_astray", "short way", "long way"),
)
# What libraries call by these names.
CALLED_BY_LIBRARIES: Final = {
    *("load_dialect_impl", "is_disconnect", "on_connect", "set_isolation_level", "detect_autocommit_setting"),
    *("create_default_cursor", "fetchmany", "rollback", "on_response_complete"),
    *("collect", "emit", "on_end", "connect_unix_socket", "_fetch_token", "ignore_aliases", "data_received"),
}
# Migrations stay as they were applied.
MODULES: Final = {
    path.relative_to(PACKAGE): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py") if "versions" not in path.parts
}


def test_no_folder_holds_more_modules_than_one_can_take_in() -> None:
    counts = Counter(path.parent.as_posix() for path in MODULES if path.name != "__init__.py")
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_no_module_is_too_long_to_be_read_in_one_sitting() -> None:
    lines = {path.as_posix(): text.count("\n") for path, text in MODULES.items()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("word", COINED)
def test_no_name_is_coined(word: str) -> None:
    coined = re.compile(rf"\b{word}\b")
    assert [path.as_posix() for path, text in MODULES.items() if coined.search(text)] == []


def test_no_two_classes_have_the_same_name() -> None:
    """One word, one concept: a second class of a name is the same thing and belongs together, or it is called what it is."""
    defined = [(name, path.as_posix()) for path, text in MODULES.items() for name in re.findall(r"(?m)^class ([A-Z]\w*)", text)]
    counts = Counter(name for name, _ in defined)
    assert [(name, path) for name, path in sorted(defined) if counts[name] > 1] == []


def test_nothing_waits_by_what_swallows_its_own_end() -> None:
    """asyncio.wait_for of Python 3.11 passes over a cancellation that comes as its future ends: a loop around it never does."""
    assert [path.name for path in PACKAGE.rglob("*.py") if "asyncio.wait_for(" in path.read_text()] == []


def test_nothing_is_written_for_the_tests_alone() -> None:
    """Whatever is defined without a decorator, by which it may be registered, is named elsewhere in the package, too."""
    text = "\n".join([*MODULES.values(), *(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.html"))])
    definition = re.compile(r" *(?:async )?(?:def|class) (?!__)(\w+)")
    defined = Counter[str]()
    for lines in (module.splitlines() for module in MODULES.values()):
        found = ((above, definition.match(line)) for above, line in pairwise(lines))
        defined.update(match[1] for above, match in found if match and not above.lstrip().startswith("@"))
    named = Counter(re.findall(r"\w+", text))
    assert {name for name, count in defined.items() if named[name] <= count} == CALLED_BY_LIBRARIES
