"""Lists texts of the panel that look like English and are not marked: `python -m tests.languages.unmarked admin/keys`.

Without arguments it looks at the whole panel. Of Python it takes what reads like a sentence: a capital, several words, a full stop
at the end or values in it; of templates what stands between tags, outside of `trans`; of scripts strings that begin with a capital
and have several words.
"""

import ast
import re
import sys
from collections.abc import Iterator
from typing import Final

from scripts.catalogues import PACKAGE

_TEMPLATE_PARTS: Final = re.compile(
    r"(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|<[^<>{}]*(?:\{\{.*?\}\}[^<>{}]*|\{%.*?%\}[^<>{}]*)*>)", re.DOTALL
)
_ENTITY: Final = re.compile(r"&#?\w+;")
_WORD: Final = re.compile(r"[A-Za-z]{2}")
_SENTENCE: Final = re.compile(r"[A-Z][a-z]*[ ,:].*[a-z]|.*[a-z]{2} .*[a-z]{2}\.$", re.DOTALL)
_MARKS: Final = frozenset({"say", "say_many", "mark", "mark_many"})
_NO_TEXTS: Final = frozenset(
    {"Field", "getLogger", "compile", "warning", "info", "error", "exception", "ValueError", "LookupError"}
)
_SCRIPT_STRING: Final = re.compile(r"""(?<![\w(])(?<!t\()(?<!many\()(["'`])([A-Z][a-z]*[ ,].*?)\1""")


def main() -> int:
    """Print what is found below the given folders of the package; the status is 1 if something is."""
    found = [line for place in sys.argv[1:] or ("admin",) for line in find_unmarked(place)]
    print("\n".join([*found, f"{len(found)} texts"]))  # noqa: T201  # a program
    return 1 if found else 0


def find_unmarked(place: str) -> Iterator[str]:
    """Find what is not marked below a folder of the package: its Python, its templates and its scripts."""
    name = place.rpartition("/")[2]
    folders = [PACKAGE / place, *([PACKAGE / "admin" / "templates" / name] if place != "admin" else [])]
    for path in sorted({path for folder in folders for path in folder.rglob("*")}):
        reader = {".py": _read_python, ".html": _read_template, ".js": _read_script}.get(path.suffix)
        if reader is not None:
            for line, text in reader(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(PACKAGE)}:{line}: {' '.join(text.split())[:110]}"


def _read_template(source: str) -> Iterator[tuple[int, str]]:
    is_marked, codes, at = False, 0, 0
    for index, part in enumerate(_TEMPLATE_PARTS.split(source)):
        line = source.count("\n", 0, at) + 1
        at += len(part)
        if index % 2 == 0:
            if not is_marked and not codes and _WORD.search(_ENTITY.sub("", part)):
                yield line, part
        elif re.match(r"\{%[-+]?\s*(end)?trans\b", part):
            is_marked = "endtrans" not in part
        elif part.startswith(("<code", "</code")):
            codes += -1 if part.startswith("</") else 1
        elif "plural(" in part:
            yield line, part


def _read_python(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            texts = node.args if name in _MARKS | _NO_TEXTS else []
            passed.update(id(inner) for text in texts for inner in ast.walk(text))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed.add(id(node.value))  # a docstring
        elif isinstance(node, ast.JoinedStr) and id(node) not in passed:
            passed.update(id(part) for part in node.values)
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            whole = "".join(parts)
            if _SENTENCE.match(whole):
                yield node.lineno, whole
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed
            and _SENTENCE.match(node.value)
        ):
            yield node.lineno, node.value


def _read_script(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        for found in _SCRIPT_STRING.finditer(line.partition("// ")[0]):
            if "many(" not in line[: found.start()]:
                yield number, found[2]


if __name__ == "__main__":
    sys.exit(main())
