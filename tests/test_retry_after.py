"""How long another server asks to be left alone."""

import pytest

from trellis.retry_after import parse_retry_after


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (None, 0),
        ("", 0),
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("86401", 86_400),
        ("9" * 400, 86_400),
        ("-5", 0),
        ("1.5", 0),
        ("soon", 0),
        ("Fri, 01 Jan 2010 00:00:00 GMT", 0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 86_400),
        ("Fri, 99 Jan 2100 00:00:00 GMT", 0),
        ("Fri, 99999999999999999999 Jan 2100 00:00:00 GMT", 0),
        ("²", 0),
    ],
)
def test_retry_after(sent: str | None, seconds: float) -> None:
    assert parse_retry_after(sent) == seconds
