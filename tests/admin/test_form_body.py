"""Reading forms: percent-encoded ones on every page, those of several parts where a page takes them."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import trellis
from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import read_forms
from tests.community import Community
from tests.fixture_types import Events, Run

pytestmark = pytest.mark.either_engine

_PART = '--cut\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
_TYPE = {"content-type": "multipart/form-data; boundary=cut"}


def _send(admin: Visitor, path: str, *parts: tuple[str, str], end: str = "--cut--\r\n") -> tuple[int, str]:
    body = "".join(_PART.format(name, value) for name, value in parts) + end
    response = admin.client.post(f"/admin{path}", content=body.encode(), headers=_TYPE, follow_redirects=False)
    return response.status_code, page_text(response)


def test_a_page_that_takes_several_parts_reads_them(admin: Visitor) -> None:
    status, text = _send(admin, "/structure", ("csrf", admin.csrf), ("document", "format: gardén\r\nname: x"))
    assert status == 400
    assert "line 1: format must be trellis/1, not 'gardén'." in text


def test_another_page_does_not(admin: Visitor, mira: int) -> None:
    status, text = _send(admin, f"/administrators/{mira}", ("csrf", admin.csrf), ("name", "M"))
    assert status == 415
    assert "forms as browsers send them" in text


def test_the_limit_is_told(admin: Visitor) -> None:
    status, text = _send(admin, "/structure", ("document", "x" * (17 * 2**20)))
    assert status == 413
    assert "larger than the limit of 17 MiB" in text


def test_a_percent_encoded_form_stays_small(admin: Visitor) -> None:
    response = admin.post("/structure", {"document": "x" * 2**20})
    assert response.status_code == 413
    assert "larger than the limit of 1 MiB" in page_text(response)


@pytest.mark.parametrize(
    ("parts", "end", "words"),
    [
        ((("document", "x"),), "", "before its closing boundary"),
        (tuple((f"a{i}", "x") for i in range(501)), "--cut--\r\n", "501 fields"),
    ],
)
def test_what_cannot_be_read_is_refused(admin: Visitor, parts: tuple[tuple[str, str], ...], end: str, words: str) -> None:
    status, text = _send(admin, "/structure", *parts, end=end)
    assert status == 400
    assert words in text


def test_enter_on_a_page_of_which_a_part_is_on_its_way_changes_nothing(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    run("keys.create", name="Sync", grants=["calendars.list", "forums.get", "forums.list"])
    known, grants = events(), run("keys.get", 1)["grants"]
    for path, last in (("/keys/1/edit", 'value="forums.get"'), (f"/forums/{community.news}", 'name="permissions.add" value="*"')):
        page = admin.get(path).text
        begun = SimpleNamespace(text=page[: page.index(">", page.index(last))] + "></form>")
        form = next(form for form in read_forms(begun) if "name" in dict(form.pairs))
        response = admin.post(path, form.filled(name="Renamed"))
        assert response.status_code == 400
        assert "The page had not loaded to its end" in page_text(response)
    assert (events(), run("keys.get", 1)["grants"]) == (known, grants)


def test_each_form_that_begins_with_the_button_for_enter_has_an_end() -> None:
    templates = Path(trellis.__file__).parent / "admin" / "templates"
    forms = [
        form for file in templates.rglob("*.html") for form in re.findall(r"<form\b.*?</form>", file.read_text("utf-8"), re.DOTALL)
    ]
    begun = [form for form in forms if "ui.enter(" in form]
    assert len(begun) > 10
    assert [form for form in begun if not form.endswith("{{ ui.end() }}</form>")] == []
