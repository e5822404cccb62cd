"""Nodes that a structure document manages say so before they are changed by hand."""

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.structure.documents import GARDEN
from tests.fixture_types import Run

_NOTE = "This forum is managed by the document “garden”. The next apply"


@pytest.fixture
def beds(run: Run) -> int:
    """A forum that the document manages; it has another below it."""
    run("structure.apply", document=GARDEN)
    return next(int(one["id"]) for one in run("forums.list")["results"] if one["externalId"] == "beds")


@pytest.mark.either_engine
def test_the_pages_that_change_it_warn(admin: Visitor, run: Run, beds: int) -> None:
    other = run("forums.create", name="Elsewhere")["id"]
    for page, what in (("", "changes it back."), ("/move", "changes it back."), ("/delete", "creates it again, with another id.")):
        assert f"{_NOTE} {what}" in page_text(admin.get(f"/forums/{beds}{page}"))
        assert "managed by" not in page_text(admin.get(f"/forums/{other}{page}"))


@pytest.mark.either_engine
def test_its_page_names_the_document(admin: Visitor, run: Run, beds: int) -> None:
    text = page_text(admin.get(f"/forums/{beds}"))
    assert "Managed by garden" in text
    other = run("forums.create", name="Elsewhere")["id"]
    text = page_text(admin.get(f"/forums/{other}"))
    assert "Managed by" not in text


def test_a_script_that_moves_it_is_told(admin: Visitor, run: Run, beds: int) -> None:
    other = run("forums.create", name="Elsewhere")["id"]
    json = {"accept": "application/json"}
    for number, note in ((beds, "This forum is managed by the document “garden”: the next apply moves it back."), (other, "")):
        version = find_form(admin.get(f"/forums/{number}/move"), "/move")["_version"]
        moved = admin.post(f"/forums/{number}/move", {"position": "1", "_version": version}, headers=json).json()
        assert (moved["moved"], moved["note"]) == (True, note)
