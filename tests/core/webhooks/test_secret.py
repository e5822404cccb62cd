"""The secret of a webhook, and how it is kept."""

import base64

import pytest

from trellis.core.webhooks.secret import SecretLost, new_kept, redacted, secret_bytes, shown

KEY = "a long and random text"


@pytest.mark.parametrize("key", [None, KEY])
def test_a_secret_is_32_bytes_and_another_one_each_time(key: str | None) -> None:
    kept = new_kept(key)
    text = shown(kept, key)
    assert text.startswith("whsec_")
    assert base64.b64decode(text.removeprefix("whsec_")) == secret_bytes(kept, key)
    assert len(secret_bytes(kept, key)) == 32
    assert new_kept(key) != kept


def test_with_a_key_the_database_alone_tells_nothing() -> None:
    kept = new_kept(KEY)
    assert shown(kept, KEY).removeprefix("whsec_") not in kept
    assert KEY not in kept


def test_a_secret_made_under_another_key_is_lost_until_that_one_is_back() -> None:
    kept = new_kept(KEY)
    for other in (None, "another long and random text"):
        with pytest.raises(SecretLost, match="TRELLIS_WEBHOOK_KEY"):
            secret_bytes(kept, other)
    assert secret_bytes(kept, KEY)


def test_a_secret_made_without_a_key_works_when_one_is_set_later() -> None:
    kept = new_kept(None)
    assert secret_bytes(kept, KEY) == secret_bytes(kept, None)


def test_what_looks_like_a_secret_is_hidden() -> None:
    assert redacted(f"got {shown(new_kept(None), None)}, thanks") == "got whsec_[hidden], thanks"
