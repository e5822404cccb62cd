"""Bring the catalogues of the panel's languages up to date with the texts in the code, for `make catalogues`.

Texts are found in the templates, where Python calls `say`, `say_many` and their marks, where scripts call `t` and `many`, and in
the tables of the core. Each stands in the file of one area, sorted, without places or dates, so that two branches merge easily.
What is translated is kept, and what has gone is dropped. With --check nothing is written, and the status is 1 if something would
be.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_javascript
from babel.messages.pofile import write_po
from jinja2 import Environment
from jinja2.ext import extract_from_ast

from scripts.texts_of_tables import list_texts_of_tables
from trellis.languages.catalogues import FOLDER, SCRIPTS, read_catalogue

PACKAGE: Final = Path(__file__).parent.parent / "src" / "trellis"
_TEMPLATES: Final = "admin/templates"
_PYTHON: Final = {"say": (0,), "say_many": (1, 2), "mark": (0,), "mark_many": (0, 1)}
_CALLS: Final = re.compile(rf"\b(?:{'|'.join(_PYTHON)})\(")
_SCRIPT: Final = {"t": (0,), "many": (1, 2)}

Text = str | tuple[str, str]

# Each file's area is that of the longest prefix of its path. A text of several areas is in the first of them in this table.
AREAS: Final = {
    SCRIPTS.removesuffix(".po"): ("admin/static",),
    "panel": ("admin", _TEMPLATES),
    "tables": (),
    "core": ("",),
    "nodes": ("admin/nodes", "admin/many", f"{_TEMPLATES}/nodes", f"{_TEMPLATES}/many"),
    "keys": ("admin/keys", f"{_TEMPLATES}/keys"),
    "structure": ("admin/structure", f"{_TEMPLATES}/structure"),
    "webhooks": ("admin/webhooks", f"{_TEMPLATES}/webhooks", f"{_TEMPLATES}/deliveries"),
    "events": ("admin/events", "admin/undo", f"{_TEMPLATES}/events"),
    "requests": ("admin/requests", f"{_TEMPLATES}/requests", f"{_TEMPLATES}/logs"),
    "proposals": ("admin/proposals", f"{_TEMPLATES}/proposals"),
    "administrators": (
        "admin/admins",
        "admin/factors",
        f"{_TEMPLATES}/account",
        f"{_TEMPLATES}/administrators",
        f"{_TEMPLATES}/factors",
    ),
    "signing-in": (
        *(f"admin/admins/{name}" for name in ("sign_in", "sign_on", "first_run", "confirm_password", "checking")),
        *(f"{_TEMPLATES}/{name}" for name in ("sign", "second_step", "passkey", "first_run", "invitation", "link_spent")),
        *(f"{_TEMPLATES}/{name}" for name in ("new_password", "confirm_password", "no_administrator")),
    ),
    "overview": (
        *(f"admin/{name}" for name in ("overview", "alarms", "search", "filters", "news")),
        *(f"{_TEMPLATES}/{name}" for name in ("overview", "alarms", "search", "filters", "check")),
    ),
}


def main() -> int:
    """Write the catalogues of all languages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if something is not up to date")
    is_check = parser.parse_args().check
    texts = find_texts()
    outdated = [path for folder in find_folders() for path in update(folder, texts, writes=not is_check)]
    if is_check and outdated:
        print(f"Not up to date: {', '.join(path.name for path in outdated)}. Run `make catalogues`.", file=sys.stderr)
        return 1
    return 0


def find_folders() -> list[Path]:
    """Return the folders of the languages that there are catalogues of."""
    return sorted(path for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("_"))


def update(folder: Path, texts: dict[str, set[Text]], *, writes: bool = True) -> list[Path]:
    """Bring the catalogues of one language up to date, and return those that were not."""
    known = read_catalogue(sorted(folder.glob("*.po")), folder.name)
    contents = {folder / f"{area}.po": format_area(folder.name, known, found) for area, found in texts.items() if found}
    outdated = [path for path, content in contents.items() if not path.exists() or path.read_bytes() != content]
    outdated += [path for path in sorted(folder.glob("*.po")) if path not in contents]
    for path in outdated if writes else ():
        if path in contents:
            path.write_bytes(contents[path])
        else:
            path.unlink()
    return outdated


def format_area(code: str, known: Catalog, texts: set[Text]) -> bytes:
    """Return the catalogue of one area, with what is translated so far."""
    catalogue = Catalog(code.replace("-", "_"), fuzzy=False)
    for text in texts:
        message = known.get(text)
        kept = message is not None and isinstance(message.id, str) == isinstance(text, str)
        catalogue.add(
            text,
            message.string if message is not None and kept else None,
            flags=message.flags & {"fuzzy"} if message is not None else (),
            user_comments=message.user_comments if message is not None else (),
        )
    written = BytesIO()
    write_po(written, catalogue, width=0, no_location=True, omit_header=True, sort_output=True, ignore_obsolete=True)
    head = (
        'msgid ""\nmsgstr ""\n'
        f'"Language: {code}\\n"\n'
        '"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=utf-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
        f'"Plural-Forms: {catalogue.plural_forms}\\n"\n\n'
    )
    return head.encode() + written.getvalue().rstrip(b"\n") + b"\n"


# --- the texts of the code ----------------------------------------------------------------------------------------------


def find_texts() -> dict[str, set[Text]]:
    """Return all texts, by area; each is in one area only."""
    found: dict[str, set[Text]] = {area: set() for area in AREAS}
    for path in sorted(PACKAGE.rglob("*")):
        place = path.relative_to(PACKAGE).as_posix()
        if path.suffix in {".py", ".html", ".js"} and "migrations" not in place and not place.startswith("rest/docs"):
            found[find_area(place)].update(read_texts(path))
    found["tables"].update(list_texts_of_tables())
    counted = {text[0]: text for texts in found.values() for text in texts if isinstance(text, tuple)}
    seen: set[Text] = set()
    for area, texts in found.items():
        # A catalogue has one entry for a text that is counted in one place and stands alone in another.
        texts = {counted.get(text, text) if isinstance(text, str) else text for text in texts}  # noqa: PLW2901  # the same, merged
        found[area] = texts - seen
        seen |= texts
    return found


def find_area(place: str) -> str:
    """Return the area of a file, by its path in the package."""
    prefixes = [(prefix, area) for area, those in AREAS.items() for prefix in those]
    return max((pair for pair in prefixes if place.startswith(pair[0])), key=lambda pair: len(pair[0]))[1]


def read_texts(path: Path) -> Iterator[Text]:
    """Return the texts that a file marks."""
    if path.suffix == ".py":
        code = path.read_text(encoding="utf-8")
        if _CALLS.search(code):  # two of three files have none, and need not be parsed
            yield from _find_in_python(ast.parse(code))
        return
    if path.suffix == ".html":
        template = _environment().parse(path.read_text(encoding="utf-8"))
        for _, name, texts in extract_from_ast(template, ("_", "gettext", "ngettext")):
            yield from _pick_of_template(name, texts)
        return
    with path.open("rb") as content:
        calls = extract_javascript(content, dict.fromkeys(_SCRIPT), (), {"parse_template_string": True})
        yield from (_pick(str(name), texts) for _, name, texts, _ in calls)


@cache
def _environment() -> Environment:
    """Return what parses templates as the panel does."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.i18n"])  # noqa: S701  # it renders nothing
    environment.policies["ext.i18n.trimmed"] = True
    environment.newstyle_gettext = True  # type: ignore[attr-defined]  # the extension adds it
    return environment


def _pick(name: str, texts: object) -> Text:
    given = texts if isinstance(texts, tuple) else (texts,)
    places = _SCRIPT[name]
    picked = tuple(given[place] if place < len(given) else None for place in places)
    if not all(isinstance(text, str) for text in picked):
        raise SystemExit(f"A script calls {name} with something that is no text: {texts}.")
    return picked if len(picked) > 1 else picked[0]  # type: ignore[return-value]  # each is a str


def _pick_of_template(name: str, texts: object) -> Iterator[Text]:
    given = texts if isinstance(texts, tuple) else (texts,)
    if name == "ngettext" and all(isinstance(text, str) for text in given[:2]):
        yield (given[0], given[1])
    elif name != "ngettext" and isinstance(given[0], str):
        yield given[0]


def _find_in_python(tree: ast.AST) -> Iterator[Text]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PYTHON:
            places = _PYTHON[node.func.id]
            given = [node.args[place] for place in places if place < len(node.args)]
            texts = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if len(texts) == len(places) and all(texts):
                yield texts[0] if len(texts) == 1 else (texts[0], texts[1])


if __name__ == "__main__":
    sys.exit(main())
