"""The list of passwords known from breaches: found wherever in the file they are, and refused wherever one is set."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha1
from pathlib import Path

import pytest

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from trellis.compose import compose
from trellis.core.passwords import BreachedPasswords
from trellis.errors import Refused
from trellis.settings import PREFIX, Settings, SettingsError


def digest(password: str) -> str:
    return sha1(password.encode(), usedforsecurity=False).hexdigest()


def write(file: Path, *passwords: str, end: str = ":7\r\n") -> Path:
    """Write a list as the downloader does, with how often each was seen."""
    file.write_bytes("".join(f"{line}{end}" for line in sorted(digest(one).upper() for one in passwords)).encode())
    return file


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("end", [":7\r\n", ":23456789\n", "\n"])
def test_each_is_found_and_no_other(tmp_path: Path, count: int, end: str) -> None:
    known = [f"password {number}" for number in range(count)]
    breached = BreachedPasswords(write(tmp_path / "list", *known, end=end))
    assert all(one in breached for one in known)
    assert not any(f"another {number}" in breached for number in range(500))
    assert "half of \ud83d" not in breached, "a terminal may send what is no text"


def test_lines_of_any_length_and_case_are_found(tmp_path: Path) -> None:
    known = [f"password {number}" for number in range(200)]
    lines = [f"{line}:{10 ** (number % 9)}" for number, line in enumerate(sorted(map(digest, known)))]
    (tmp_path / "list").write_text("\n".join(lines))  # and without an end of the last
    assert all(one in BreachedPasswords(tmp_path / "list") for one in known)


@pytest.fixture
def strict(settings: Settings, clock: Clock, tmp_path: Path) -> Iterator[Run]:
    """Run operations where a list of breached passwords is set."""
    file = write(tmp_path / "list", "kept in a tin box", "another one of these")
    gate = compose(replace(settings, breached_passwords=str(file)), clock=clock)
    yield runner(gate)
    gate.store.close()


def test_they_are_refused_wherever_one_is_set(strict: Run, tmp_path: Path) -> None:
    person = {"name": "Mira Holm", "login": "mira@example.com"}
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is known from a breach"):
        strict("admins.create", **person, password="kept in a tin box")
    mira = strict("admins.create", **person, password="kept in a wooden box")["id"]
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is known from a breach"):
        strict("admins.set_password", mira, password="another one of these")
    (tmp_path / "list").unlink()
    with pytest.raises(Refused, match=r"TRELLIS_BREACHED_PASSWORDS names cannot be read"):
        strict("admins.set_password", mira, password="a third wooden box here")


def test_a_list_that_is_none_stops_the_start(tmp_path: Path) -> None:
    def load(file: Path) -> str | None:
        return Settings.load({f"{PREFIX}BREACHED_PASSWORDS": str(file)}, None).breached_passwords

    good = write(tmp_path / "list", "one")
    assert load(good) == str(good)
    (tmp_path / "words").write_text("password\n")
    with pytest.raises(SettingsError, match="must name a file of SHA-1 digests"):
        load(tmp_path / "words")
    with pytest.raises(SettingsError, match="must name a file that can be read"):
        load(tmp_path / "nowhere")
