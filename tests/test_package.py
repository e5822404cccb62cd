"""The shape of the package: folders and modules of a size that can be read, and words that need no introduction."""

import ast
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
USED_TOO: Final = {"NodeKind"}  # offered by a folder whose `__init__` itself uses it
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


def _list_imports(text: str) -> list[tuple[str, str, str]]:
    """Return the names that a module imports: the module that each is from, its name there, and its name here."""
    found = re.findall(r"^ *from ([\w.]+) import (\([^)]+\)|.*)", re.sub(r"  #.*", "", text), re.MULTILINE)
    names = [(source, name.split()) for source, names in found for name in names.strip("()").split(",") if name.strip()]
    return [(source, name[0], name[-1]) for source, name in names]


def test_names_are_imported_from_where_they_are_defined_or_from_a_folder_that_offers_them() -> None:
    """A folder offers what its `__init__` imports without using it. It offers nothing that nobody uses."""
    texts = {".".join(("trellis", *path.with_suffix("").parts)).removesuffix(".__init__"): text for path, text in MODULES.items()}
    imports = {module: _list_imports(text) for module, text in texts.items()}
    words = {module: frozenset(re.findall(r"\w+", text)) for module, text in texts.items()}
    foreign = {module: {here for source, _, here in found if source != module} for module, found in imports.items()}
    for folder in (path.parent for path in MODULES if path.name == "__init__.py"):
        name = ".".join(("trellis", *folder.parts))
        used = {node.id for node in ast.walk(ast.parse(texts[name])) if isinstance(node, ast.Name)}
        foreign[name] = {here for source, _, here in imports[name] if not f"{source}.".startswith(f"{name}.")} & used - USED_TOO
        others = [known for module, known in words.items() if not f"{module}.".startswith(f"{name}.")]
        offered = {here for _, _, here in imports[name]} - used
        assert {one for one in offered if not any(one in known for known in others)} == set(), name
    for module, found in imports.items():
        places = {here: f"{source}.{name}" for source, name, here in found}
        taken = [(source, name) for source, name, _ in found]
        taken += [(places[name], attribute) for name, attribute in re.findall(r"\b(\w+)\.(\w+)", texts[module]) if name in places]
        assert [one for one in taken if one[1] in foreign.get(one[0], ())] == [], module
