"""The tutorials in docs/contributing are carried out as printed: on a copy of the project, which then passes the sweeps."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from tests.conftest import runner
from tests.rest.documented import validate_additions
from trellis.compose import compose
from trellis.settings import Settings
from trellis.store.migrate import migrate

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = ROOT / "docs" / "contributing"
CHECKED: Final = ROOT / ".mypy_cache"
_BLOCK: Final = re.compile(r"<!-- (file|edit): (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
_SWEEPS: Final = (
    "tests/sweeps/test_operations.py",
    "tests/sweeps/test_interfaces.py",
    "tests/sweeps/test_kinds.py",
    "tests/sweeps/test_events.py::test_every_event_and_every_message_is_as_documented",
    "tests/core/test_operation.py",
    "tests/core/test_verbs.py",
    "tests/core/keys/test_crud.py",
    "tests/core/keys/test_presets.py",
    "tests/kinds/test_kinds.py",
    "tests/languages/test_catalogues.py::test_an_offered_language_is_whole",
    "tests/languages/test_catalogues.py::test_the_catalogues_of_an_offered_language_are_up_to_date",
    "tests/rest/docs/test_openapi.py",
    "tests/rest/docs/test_openapi_examples.py",
    "tests/rest/docs/test_reference.py",
    "tests/admin/keys/test_grants.py",
    "tests/admin/keys/test_recipes.py",
    "tests/admin/nodes/test_node.py::test_all_kinds_are_visited",
    "tests/admin/structure/test_pages.py::test_all_is_exported_as_yaml[sqlite]",
    "tests/admin/test_sent_twice.py::test_every_form_of_the_panel_is_sent_twice[sqlite]",
    "tests/admin/nodes/test_index.py::test_an_empty_list_says_how_to_begin[sqlite]",
    "tests/admin/nodes/test_index.py::test_a_script_in_a_name_or_description_does_not_run[sqlite-courses]",
    "tests/admin/nodes/test_index.py::test_every_operation_of_every_kind_can_be_reached[sqlite]",
    "tests/admin/test_app.py::test_no_page_answers_without_a_session[sqlite]",
    "tests/admin/test_tokens.py::test_no_page_takes_a_form_without_the_sessions_token[sqlite]",
    "tests/admin/test_app.py::test_every_answer_has_the_headers_and_no_inline_scripts_or_styles[sqlite]",
)
_ELSEWHERE: Final = (  # tests of these files with kinds of their own, of addresses and refusals, and of what each page has
    "declared_here",
    "without_any_kind",
    "address_with_markup",
    "address_from_elsewhere",
    "few_addresses",
    "below_a_path",
    "of_this_service",
    "settings_that_hold",
    "names_the_public",
    "names_this_service",
    "rendered_once",
    "problem_names",
    "not_known",
    "colour",
    "refusal_in_it",
    "link_that_the_program",
    "strict_policy",
    "other_methods",
    "other_origins",
    "when_it_is_known",
    "it_is_valid",  # what is new in the document is validated beside
)
_ONE_BY_ONE: Final = ("does_the_same_at_the_terminal",)  # tests with a case for each operation, which know nothing of the others

# Tells, as JSON, where the operations of a catalogue appear.
_LOOK: Final = """
import asyncio
import re
import orjson
import trellis
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.sections import pages_of
from trellis.compose import compose
from trellis.kinds import KINDS
from trellis.rest.docs import Reference, document
from trellis.settings import Settings

gate = compose(Settings.load({"TRELLIS_DATABASE_URL": "sqlite:///nothing.db"}, None))
catalogue = gate.catalogue
told = document(catalogue)
page = asyncio.run(Reference(catalogue, Settings.load({}, None)).find("/docs", "http://localhost")).body.decode()
print(orjson.dumps({
    "package": trellis.__file__,
    "rest": [o.name for o in catalogue.values() if o.path],
    "openapi": [o["operationId"] for methods in told["paths"].values() for o in methods.values()],
    "schemas": list(told["components"]["schemas"]),
    "reference": re.findall(r'id="(\\w+\\.\\w+)"', page),
    "grants": sorted(GrantGrid(catalogue).names),
    "columns": list(GrantGrid(catalogue).columns),
    "panel": [f"{page.method} {page.path}" for page in pages_of(catalogue, KINDS)],
    "events": gate.environment.event_types,
}).decode())
"""


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    """Where the operations of the project as it is appear."""
    return appearances(ROOT)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy the package and its settings, with what is compiled of it, but not what is being written there just now."""
    copy(tmp_path, "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def project(package: Path) -> Path:
    """Copy what the tests need of the project."""
    copy(package, "tests", "docs", "scripts")
    for file in [*ROOT.glob("*.md"), *ROOT.glob("*.ini"), ROOT / "Makefile"]:
        shutil.copy(file, package)
    return package


def copy(project: Path, *folders: str) -> None:
    for folder in folders:
        shutil.copytree(ROOT / folder, project / folder, ignore=shutil.ignore_patterns("*.pyc.*", "node_modules"))


def follow(page: str, project: Path) -> list[tuple[str, int]]:
    """Do what a page says; give each file that it touches, with the number of lines that are new there."""
    touched = []
    for what, name, block in _BLOCK.findall((PAGES / page).read_text(encoding="utf-8")):
        path = project / name
        if what == "file":
            assert not path.exists(), name
            path.write_text(block, encoding="utf-8")
        else:
            lines = block.splitlines()
            old = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
            new = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
            text = path.read_text(encoding="utf-8")
            assert text.count(old) == 1, f"{page} changes lines that are not in {name}:\n{old}"
            path.write_text(text.replace(old, new), encoding="utf-8")
        touched.append((name, block.count("\n") if what == "file" else sum(line[0] == "+" for line in block.splitlines())))
    return touched


def run(project: Path, *arguments: str, status: int = 0) -> str:
    """Run Python in a project, with its own package."""
    there = {**os.environ, "PYTHONPATH": str(project / "src")}
    there = {name: value for name, value in there.items() if not name.startswith(("TRELLIS_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=there, capture_output=True, text=True, timeout=1500, check=False
    )
    assert done.returncode == status, (done.stdout + done.stderr)[-6000:]
    return done.stdout


def type_in(project: Path, page: str) -> str:
    """Run the commands of a page as printed, over a new database with one forum; give what they print."""
    (typed,) = re.findall(r"```sh\n(.*?)```", (PAGES / page).read_text(encoding="utf-8"), re.DOTALL)
    settings = Settings(database_url=f"sqlite:///{project}/typed.db")
    migrate(settings)
    gate = compose(settings)
    runner(gate)("forums.create", name="News")
    gate.store.close()
    start = f'trellis() {{ {sys.executable} -m trellis "$@"; }}\n'
    there = {**os.environ, "PYTHONPATH": str(project / "src"), "TRELLIS_DATABASE_URL": settings.database_url}
    done = subprocess.run(["sh", "-ec", start + typed], cwd=project, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def appearances(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(run(project, "-c", _LOOK))
    assert Path(found["package"]).is_relative_to(project)
    return found


def sweep(project: Path) -> None:
    """Run the sweeps and the tests of declarations, on SQLite and over the API, but for those that know nothing of what is new.

    Those that walk over everything keep to what is new: see `additions.py`.
    """
    left_out = " or ".join(("postgresql", "mcp", "invision", *_ELSEWHERE))
    chosen = f"not ({left_out}) and (courses or touch or not ({' or '.join(_ONE_BY_ONE)}))"
    run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.docs.additions", "-k", chosen, *_SWEEPS)


def readable(project: Path, *names: str) -> None:
    """See that what was printed is in the project's style."""
    run(project, "-m", "ruff", "check", *names)
    run(project, "-m", "ruff", "format", "--check", *names)


def test_a_kind_is_added_as_printed(package: Path, before: dict[str, Any]) -> None:
    touched = follow("add-a-kind.md", package)
    assert [name for name, _ in touched] == ["src/trellis/kinds/courses.py", *["src/trellis/kinds/__init__.py"] * 2]
    assert sum(lines for name, lines in touched[1:]) == 2
    after = appearances(package)
    grants = {f"courses.{verb}" for verb in ("list", "get", "create", "update", "delete", "copy")}
    names = grants | {f"courses.{verb}" for verb in ("get_external", "put_external", "delete_external", "order", "tree")}
    for place in ("rest", "openapi", "reference"):
        assert set(after[place]) - set(before[place]) == names, place
    assert set(after["grants"]) - set(before["grants"]) == grants | {"courses.restore"}
    assert {"Course", "CoursePage", "CourseInput", "CourseChanges", "CoursePermissions"} <= set(after["schemas"])
    assert {"GET /courses", "POST /courses/new", "POST /courses/{id:int}/copy"} <= set(after["panel"])
    assert {"course.created", "course.moved", "course.copied", "course.restored"} <= set(after["events"])
    readable(package, "src/trellis/kinds/courses.py", "src/trellis/kinds/__init__.py")
    assert '"difficulty": "advanced"' in type_in(package, "add-a-kind.md")


def test_an_operation_is_added_as_printed(package: Path, before: dict[str, Any]) -> None:
    touched = follow("add-an-operation.md", package)
    assert [name for name, _ in touched] == ["src/trellis/core/nodes/touch.py", *["src/trellis/core/nodes/__init__.py"] * 2]
    assert sum(lines for name, lines in touched[1:]) <= 5
    after = appearances(package)
    names = {f"{kind}.touch" for kind in ("forums", "calendars", "categories")}
    for place in ("rest", "openapi", "reference", "grants"):
        assert set(after[place]) - set(before[place]) == names, place
    assert set(after["columns"]) - set(before["columns"]) == {"touch"}
    kinds = ("forums", "calendars", "categories", "groups", "blogs")
    assert set(after["panel"]) - set(before["panel"]) == {
        f"{method} /{kind}/{{id:int}}/touch" for kind in kinds for method in ("GET", "POST")
    }
    assert set(after["events"]) - set(before["events"]) == {
        f"{kind}.touched" for kind in ("forum", "calendar", "category", "group", "blog")
    }
    assert "forums.touch" in type_in(package, "add-an-operation.md")
    readable(package, "src/trellis/core/nodes/touch.py", "src/trellis/core/nodes/__init__.py")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_what_both_pages_add_passes_the_sweeps(project: Path) -> None:
    follow("add-a-kind.md", project)
    follow("add-an-operation.md", project)
    before = (project / "docs" / "openapi.json").read_bytes()
    told = run(project, "-m", "trellis", "openapi")
    (project / "docs" / "openapi.json").write_text(told, encoding="utf-8")  # make snapshot
    described = {operation["operationId"] for methods in orjson.loads(told)["paths"].values() for operation in methods.values()}
    assert {"courses.list", "courses.touch", "forums.touch"} <= described
    validate_additions(orjson.loads(told), orjson.loads(before))
    if CHECKED.exists():  # what mypy has found out about the files that stay as they are, which takes it half a minute
        shutil.copytree(CHECKED, project / CHECKED.name)
    run(project, "-m", "mypy", "src")
    sweep(project)
