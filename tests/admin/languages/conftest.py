"""A second language for the tests, of which only a few texts are translated: that of the panel may not be whole yet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from trellis.admin import app
from trellis.admin.static import Static
from trellis.languages import catalogues

TEXTS: Final = {
    "panel": {
        "Sign out": "Abmelden",
        "Back to the overview": "Zur Übersicht",
        "Your language, time zone and theme are saved.": "Sprache, Zeitzone und Farben sind gespeichert.",
        "Same as browser: {language}": "Wie der Browser: {language}",
        "Language": "Sprache",
        "Continue": "Weiter",
    },
    "signing-in": {"Sign in": "Anmelden", "Login": "Benutzername"},
    "core": {
        "There is no record with the id {id}.": "Es gibt keinen Datensatz mit der Nummer {id}.",
        "{count:,} fields are invalid: {faults}": "{count:,} Felder sind ungültig: {faults}",
    },
    "tables": {"There is no such record": "Diesen Datensatz gibt es nicht"},
    "scripts": {"Copied.": "Kopiert."},
}


@pytest.fixture
def german(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Offer German beside English."""
    folder = tmp_path / "languages" / "de"
    folder.mkdir(parents=True)
    for area, texts in TEXTS.items():
        entries = (f'msgid "{text}"\nmsgstr "{said}"\n' for text, said in texts.items())
        (folder / f"{area}.po").write_text("\n".join(entries), encoding="utf-8")
    monkeypatch.setattr(catalogues, "FOLDER", folder.parent)
    monkeypatch.setattr(catalogues, "OFFERED", {"en": "English", "de": "Deutsch"})
    monkeypatch.setattr(app, "Static", Static)  # each panel reads these texts, and not those of panels before
    yield folder
    catalogues.load_language.cache_clear()
    catalogues.list_script_texts.cache_clear()
