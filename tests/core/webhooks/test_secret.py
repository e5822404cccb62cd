"""The secret of a webhook, and how it is kept."""

import base64

import pytest

from trellis.core.webhooks.secret import SecretUnavailable, derive_secret, format_secret, generate_secret, redact_secrets

KEY = "a long and random text"


@pytest.mark.parametrize("key", [None, KEY])
def test_a_secret_is_32_bytes_and_another_one_each_time(key: str | None) -> None:
    kept = generate_secret(key)
    text = format_secret(kept, key)
    assert text.startswith("whsec_")
    assert base64.b64decode(text.removeprefix("whsec_")) == derive_secret(kept, key)
    assert len(derive_secret(kept, key)) == 32
    assert generate_secret(key) != kept


def test_with_a_key_the_database_alone_tells_nothing() -> None:
    kept = generate_secret(KEY)
    assert format_secret(kept, KEY).removeprefix("whsec_") not in kept
    assert KEY not in kept


def test_a_secret_made_under_another_key_is_lost_until_that_one_is_back() -> None:
    kept = generate_secret(KEY)
    for other in (None, "another long and random text"):
        with pytest.raises(SecretUnavailable, match="TRELLIS_WEBHOOK_KEY"):
            derive_secret(kept, other)
    assert derive_secret(kept, KEY)


def test_a_secret_made_without_a_key_works_when_one_is_set_later() -> None:
    kept = generate_secret(None)
    assert derive_secret(kept, KEY) == derive_secret(kept, None)


def test_what_looks_like_a_secret_is_hidden() -> None:
    assert redact_secrets(f"got {format_secret(generate_secret(None), None)}, thanks") == "got whsec_[hidden], thanks"
