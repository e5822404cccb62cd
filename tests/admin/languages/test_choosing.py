"""Which language the panel is in."""

from pathlib import Path

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.memory_meter import MemoryMeter
from trellis.admin.languages import choose_language
from trellis.languages import catalogues


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-CH,fr;q=0.5", "de"),
        ("fr,de;q=0.8,en;q=0.9", "en"),
        ("fr,DE;q=0.8,en;q=0.1", "de"),
        ("de;q=0,fr", "en"),
        ("*", "en"),
        ("de;q=2, ;;, q=1", "en"),
        ("en-GB, de", "en"),
    ],
)
def test_the_browser_says_which_language_its_reader_wants(german: Path, accepted: str, code: str) -> None:
    assert choose_language("", accepted=accepted) == code
    assert choose_language("de", accepted=accepted) == "de"
    assert choose_language("xx", "en", accepted=accepted) == "en"


def test_a_very_long_language_is_none_and_takes_no_memory(german: Path) -> None:
    with MemoryMeter() as meter:
        assert choose_language("", accepted="de" + "-b" * 32_000 + ",de;q=0.5") == "de"
    assert meter.peak < 2**20


@pytest.mark.either_engine
def test_pages_before_signing_in_are_in_the_language_of_the_browser_until_another_is_chosen(
    german: Path, visitor: MakeVisitor, admin: Visitor
) -> None:
    somebody = visitor()
    page = somebody.get("/sign-in", headers={"accept-language": "de-AT,en;q=0.5"})
    assert '<html lang="de"' in page.text
    assert "Benutzername" in page.text
    assert (page.headers["content-language"], page.headers["vary"]) == ("de", "Accept-Language")
    chosen = somebody.post("/language", {"language": "en", "next": "/admin/sign-in?next=%2Fadmin%2Fkeys"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/admin/sign-in?next=%2Fadmin%2Fkeys")
    page = somebody.get("/sign-in", headers={"accept-language": "de-AT,en;q=0.5"})
    assert '<html lang="en"' in page.text
    assert "Benutzername" not in page.text
    somebody.post("/language", {"language": "xx", "next": "https://elsewhere.example/"})
    assert '<html lang="en"' in somebody.get("/sign-in").text
    assert somebody.post("/language", {"language": "de"}, csrf="").status_code == 409


def test_administrators_choose_a_language_which_stays_with_them(german: Path, admin: Visitor, visitor: MakeVisitor) -> None:
    assert "Same as browser: English" in page_text(admin.get("/account"))
    saved = admin.post("/account/view", {"zone": "", "theme": "", "language": "de"})
    assert saved.status_code == 303
    page = admin.get("/account", headers={"accept-language": "en"})
    assert "Sprache, Zeitzone und Farben sind gespeichert." in page.text
    assert "Abmelden" in page.text
    assert "Wie der Browser: English" in page.text
    refused = admin.post("/account/view", {"zone": "", "theme": "", "language": "tlh"})
    assert refused.status_code == 303
    assert "There is no such language." in admin.get("/account").text
    admin.post("/account/view", {"zone": "", "theme": "", "language": ""})
    assert "Sign out" in admin.get("/account").text


@pytest.mark.either_engine
def test_the_page_with_a_kept_form_has_its_heading_in_the_language_of_the_page(german: Path, admin: Visitor) -> None:
    typed = {"next": "/admin/groups/new", "replay": "1", "carried-name": "name", "carried-value": "Typed with care"}
    ready = admin.post("/confirm-password", {"password": PASSWORD, **typed}, headers={"accept-language": "de"})
    assert (ready.status_code, "<h1>Weiter</h1>" in ready.text) == (200, True)


@pytest.mark.either_engine
def test_a_refusal_of_the_core_is_in_the_language_of_the_page_and_over_the_api_in_english(german: Path, admin: Visitor) -> None:
    page = admin.get("/keys/9223372036854775808", headers={"accept-language": "de"})
    assert page.status_code == 404
    assert "Es gibt keinen Datensatz mit der Nummer 9223372036854775808." in page.text
    told = admin.get("/keys/9223372036854775808", headers={"accept-language": "de", "x-requested": "1"})
    assert told.status_code == 404
    as_json = admin.client.get("/admin/keys/9223372036854775808", headers={"accept-language": "de", "accept": "application/json"})
    assert as_json.json()["detail"] == "Es gibt keinen Datensatz mit der Nummer 9223372036854775808."


@pytest.mark.either_engine
def test_nobody_is_asked_where_there_is_one_language(admin: Visitor, visitor: MakeVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogues, "OFFERED", {"en": "English"})
    page = visitor().get("/sign-in", headers={"accept-language": "de"})
    assert '<html lang="en"' in page.text
    assert "/admin/language" not in page.text
    assert "content-language" not in page.headers
    assert 'name="language"' not in admin.get("/account").text
