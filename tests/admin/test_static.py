"""Style sheets and scripts reach a browser in few and small responses."""

import re
from pathlib import Path

import pytest

import trellis
from tests.admin.conftest import MakeVisitor, Visitor

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

_TEMPLATES = Path(trellis.__file__).parent / "admin" / "templates"
_SCRIPTS = {name for path in _TEMPLATES.rglob("*.html") for name in re.findall(r'static\("(\w+\.js)"\)', path.read_text("utf-8"))}


def _folder(somebody: Visitor) -> str:
    return "/static/" + str(somebody.get("/sign-in").text).split('src="/admin/static/')[1].partition("/")[0] + "/"


def test_a_script_needs_no_file_that_its_page_does_not_name(visitor: MakeVisitor) -> None:
    somebody = visitor()
    folder = _folder(somebody)
    assert len(_SCRIPTS) > 3
    shared = re.findall(r"^\{ // (\S+)$", somebody.get(folder + "panel.js").text, re.MULTILINE)
    for name in _SCRIPTS:
        script = somebody.get(folder + name).text
        others = [] if name == "panel.js" else ['import { modules } from "./panel.js";']
        assert re.findall(r"^import .*|import\(", script, re.MULTILINE) == others
        assert script.count("export ") == (name == "panel.js")
        joined = re.findall(r"^\{ // (\S+)$", script, re.MULTILINE)
        assert joined[-1] == name
        assert len({*shared, *joined}) == len(shared) + len(joined) * (name != "panel.js")  # each module runs once
        for needed in re.findall(r"= modules\.(\w+);", script):
            assert f"{needed}.js" in (*shared, *joined)


def test_files_are_compressed_for_a_browser_that_can_read_it(visitor: MakeVisitor) -> None:
    somebody = visitor()
    for name in ("panel.js", "panel.css", "base.css"):
        plain, compressed = (
            somebody.get(_folder(somebody) + name, headers={"accept-encoding": coding}) for coding in ("identity", "gzip, br")
        )
        assert "content-encoding" not in plain.headers
        assert compressed.headers["content-encoding"] == "gzip"
        assert plain.headers["vary"] == compressed.headers["vary"] == "accept-encoding"
        assert compressed.content == plain.content
        assert int(compressed.headers["content-length"]) < len(plain.content) / 2


@pytest.mark.parametrize(
    ("coding", "compressed"),
    [
        ("gzip", True),
        ("br;q=1.0, GZIP;q=0.8", True),
        ("gzip;q=0, br", False),
        ("br, gzip; q=0.000", False),
        ("xgzip", False),
        ("", False),
    ],
)
def test_files_are_compressed_for_nobody_else(visitor: MakeVisitor, coding: str, compressed: bool) -> None:
    somebody = visitor()
    response = somebody.get(_folder(somebody) + "mark.svg", headers={"accept-encoding": coding})
    assert ("content-encoding" in response.headers) == compressed
