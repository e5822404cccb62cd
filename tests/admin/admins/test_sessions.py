"""What sessions are called in the panel, and by which browsers somebody is known."""

from typing import Any, Final

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.fixture_types import Clock, Events, Run
from trellis.admin.admins.sessions import device_name

_LIKE: Final = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0"
_WINDOWS: Final = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_LIKE}"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (f"{_WINDOWS} Safari/537.36", "Chrome on Windows"),
        (f"{_WINDOWS} Safari/537.36 Edg/141.0.0.0", "Edge on Windows"),
        (f"{_WINDOWS} Safari/537.36 OPR/125.0.0.0", "Opera on Windows"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_LIKE} Safari/537.36", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (Linux; Android 13; SM-S918B) SamsungBrowser/28.0 {_LIKE} Mobile", "Samsung Internet on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
            "Safari on macOS",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) CriOS/141.0.7390.96 Mobile/15E148 Safari/604.1",
            "Chrome on iPhone",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_in_a_few_words(agent: str, name: str) -> None:
    assert device_name(agent) == name


def _last(events: Events) -> Any:
    return events()[-1]["after"]


def test_a_browser_is_new_until_somebody_has_signed_in_with_it(
    visitor: MakeVisitor, mira: int, run: Run, events: Events, clock: Clock
) -> None:
    browser = visitor()
    browser.sign_in()
    assert _last(events)["newBrowser"] is True
    browser.post("/sign-out")
    browser.sign_in()
    assert "newBrowser" not in _last(events)
    browser.post("/sign-out")
    run("admins.create", name="Ada", login="ada", password=PASSWORD, mustChangePassword=False)
    browser.sign_in("ada", PASSWORD)
    assert _last(events)["newBrowser"] is True, "another's browser is new for her"
    browser.post("/sign-out")
    browser.client.cookies.set("trellis_browser", "x" * 5000, domain="panel.example", path="/admin")
    assert browser.sign_in().status_code == 303
    assert _last(events)["newBrowser"] is True, "a cookie that was made up"
    browser.post("/sign-out")
    clock.move(days=89)
    browser.sign_in()
    assert "newBrowser" not in _last(events)
    browser.post("/sign-out")
    clock.move(days=91)
    browser.sign_in()
    assert _last(events)["newBrowser"] is True


def test_the_account_tells_what_a_session_was_confirmed_with(admin: Visitor, clock: Clock) -> None:
    assert "This one 192.0.2.7 just now just now password" in page_text(admin.get("/account"))
    assert LOGIN in page_text(admin.get("/account"))
