"""The form of an API key: how it is made, read, checked, kept and hidden."""

import hashlib
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.core.keys.secret import ALPHABET, Secret, new_secret, parse_secret, redact_keys, redact_path

secrets = st.builds(Secret, st.text(ALPHABET, min_size=8, max_size=8), st.text(ALPHABET, min_size=32, max_size=32))


def test_a_key_has_the_documented_form() -> None:
    assert re.fullmatch(r"trl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}", str(new_secret()))


def test_two_keys_are_never_the_same() -> None:
    made = {str(new_secret()) for _ in range(200)}
    assert len({text[4:12] for text in made}) == len({text[13:] for text in made}) == 200


def test_a_new_secret_can_be_made_for_an_old_public_part() -> None:
    old = new_secret()
    new = new_secret(old.public)
    assert new.public == old.public
    assert new.secret != old.secret


@given(secrets)
def test_a_key_is_read_back_from_its_text(secret: Secret) -> None:
    assert parse_secret(str(secret)) == secret


@given(secrets, st.integers(0, 50), st.sampled_from(ALPHABET))
def test_a_key_with_any_one_character_changed_is_refused(secret: Secret, at: int, other: str) -> None:
    text = str(secret)
    changed = text[:at] + other + text[at + 1 :]
    assert (parse_secret(changed) is None) == (changed != text)


@given(secrets, st.integers(0, 49))
def test_a_key_with_two_neighbours_exchanged_is_refused(secret: Secret, at: int) -> None:
    text = str(secret)
    changed = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    assert (parse_secret(changed) is None) == (changed != text)


@given(secrets, st.integers(0, 50))
def test_a_key_that_was_not_copied_whole_is_refused(secret: Secret, length: int) -> None:
    assert parse_secret(str(secret)[:length]) is None
    assert parse_secret(str(secret) + "x") is None


@given(st.text())
def test_other_text_is_no_key(text: str) -> None:
    assert parse_secret(text) is None


def test_a_trailing_line_end_is_not_overlooked() -> None:
    assert parse_secret(f"{new_secret()}\n") is None


def test_the_digest_is_the_sha_256_of_the_secret_half() -> None:
    secret = Secret("A" * 8, "b" * 32)
    assert secret.digest == hashlib.sha256(b"b" * 32).hexdigest()
    assert secret.matches(secret.digest)
    assert not secret.matches(Secret("A" * 8, "c" * 32).digest)


def test_a_secret_does_not_show_itself_in_a_debugger() -> None:
    secret = new_secret()
    assert secret.secret not in repr(secret)
    assert secret.public in repr(secret)


@given(st.text(), secrets, st.text())
def test_a_key_in_a_text_is_hidden_wherever_it_stands(before: str, secret: Secret, after: str) -> None:
    hidden = redact_keys(f"{before}{secret}{after}")
    assert f"_{secret.secret}" not in hidden
    assert f"trl_{secret.public}_[hidden]" in hidden


@given(st.text())
def test_a_text_without_a_key_stays_as_it_is(text: str) -> None:
    assert redact_keys(text) == text


def test_half_a_key_is_hidden_too() -> None:
    assert redact_keys(f"key={str(new_secret())[:30]}&page=1").endswith("_[hidden]&page=1")


def _encode(text: str, every: int, times: int, digits: str) -> str:
    """Encode some characters of a text, several times over: each time the percent signs, or the digits behind them."""
    sent = "".join(f"%{ord(one):{digits}}" if at % every == 0 else one for at, one in enumerate(text))
    for _ in range(times - 1):
        sent = sent.replace("%", "%25")
    return sent


@given(secrets, st.integers(1, 60), st.integers(1, 6), st.sampled_from(["02x", "02X"]), st.text("ab/%. ", max_size=9))
def test_a_key_is_hidden_however_it_is_percent_encoded(secret: Secret, every: int, times: int, digits: str, beside: str) -> None:
    for sent in (_encode(str(secret), every, times, digits), f"/a/{_encode(str(secret), every, times, digits)}/{beside}"):
        shown = redact_keys(sent)
        for _ in range(10):
            assert not set(_pieces(secret.secret, 16)) & set(_pieces(shown, 16))
            shown = unquote(shown, "latin-1")
        assert f"trl_{secret.public}_[hidden]" in shown


def _pieces(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(len(text) - length + 1)]


def test_a_key_behind_other_tricks_of_encoding_is_hidden() -> None:
    secret = new_secret()
    text = str(secret)
    digits = text.replace("_", "%%35%46")  # the digits of an encoded character are encoded
    endless = text.replace("_", f"{'%' * 21}{'3' * 20}5f")  # and theirs again, twenty times
    for sent in (digits, endless, f"%{text}%", f"%00%0a{_encode(text, 3, 2, '02x')}"):
        shown = redact_keys(sent)
        assert "[hidden]" in shown
        assert secret.secret not in shown
        assert "\0" not in shown, "PostgreSQL keeps no such character"


@given(st.text("trl_%25aAzZ09/. ", max_size=80))
def test_a_text_with_percent_signs_and_no_key_stays_as_it_is(text: str) -> None:
    assert redact_keys(text) == text


@pytest.mark.parametrize("length", [0, 4_070, 4_100, 60_000])
def test_a_percent_encoded_key_is_hidden_however_far_into_a_text_it_stands(length: int) -> None:
    secret = new_secret()
    shown = redact_keys("/" * length + str(secret).replace("_", "%5F") + "/beside")
    assert shown == f"{'/' * length}trl_{secret.public}_[hidden]/beside"


def test_a_long_text_without_a_key_is_neither_cut_nor_decoded() -> None:
    assert redact_keys("%41" * 20_000) == "%41" * 20_000


@given(secrets, st.integers(0, 5_000), st.sampled_from(["_", "%5F", "%255f"]))
def test_a_path_in_a_log_is_short_and_shows_no_key(secret: Secret, length: int, mark: str) -> None:
    shown = redact_path("%2F" * length + str(secret).replace("_", mark))
    assert len(shown) <= 512
    assert not set(_pieces(secret.secret, 16)) & set(_pieces(shown, 16))
