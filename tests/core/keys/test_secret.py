"""The form of an API key: how it is made, read, checked, kept and hidden."""

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from trellis.core.keys.secret import ALPHABET, Secret, new_secret, parse_secret, redact_keys

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
