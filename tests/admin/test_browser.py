"""The way in and one's own account in a real Chromium, with scripts and without; and what axe finds on these pages."""

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LOGIN, PASSWORD
from tests.browser import COLOURS, LOOKS, PLACES, Theme, bring_axe, confirm, faults, list_complaints, opened, sign_in, violations
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = pytest.mark.browser


def _first_run_link(service: Service) -> str:
    link = re.search(r"http://\S+/admin/first-run/\S+", service.output)
    assert link is not None
    return link[0]


def _begin(page: Page, service: Service) -> None:
    """Create the first administrator by the link that the service has printed."""
    page.goto(_first_run_link(service))
    page.get_by_label("Name").fill("Mira Holm")
    page.get_by_label("Login").fill(LOGIN)
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Create the administrator").click()
    expect(page.get_by_role("status")).to_contain_text("Welcome, Mira Holm")


def test_first_run_account_and_sign_in(chrome: Browser, service: Service) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    _begin(page, service)
    page.get_by_role("link", name="Administrators").click()
    page.get_by_role("link", name="Invite an administrator").click()
    confirm(page, PASSWORD)
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Login").fill(LOGIN)
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("alert")).to_contain_text("belongs to Mira Holm")
    expect(page.get_by_label("Name")).to_have_value("Ada")
    page.get_by_label("Login").fill("ada")
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("heading", name="Ada is invited")).to_be_visible()
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("heading", name="Invitation")).to_be_visible()
    page.get_by_role("link", name="Mira Holm").last.click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    context.close()
    assert list_complaints(said) == []
    context = opened(chrome, service.address, scripts=False)
    page = context.new_page()
    sign_in(page, LOGIN, PASSWORD)
    page.goto("/admin/account")
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_label("New password").fill("a better long password")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("status")).to_contain_text("Your password was changed")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, LOGIN, "a better long password")
    context.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing_before_somebody_is_signed_in(chrome: Browser, service: Service, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    bring_axe(page)
    found: dict[str, object] = {}

    def look(address: str, looks: Sequence[tuple[int, Theme]] = LOOKS) -> None:
        page.goto(address)
        if wrong := faults(page, looks):
            found[address] = wrong

    look("/admin")
    look(_first_run_link(service))
    look("/admin/first-run/spent", LOOKS[:1])
    _begin(page, service)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    look("/admin/sign-in")
    invitation = run("admins.invite", name="Ada", login="ada@example.com")["link"]
    look(f"/admin/invitation/{invitation}")
    look("/admin/invitation/spent", LOOKS[:1])
    context.close()
    assert found == {}


_KNOWN = "#known { color: #707070; background: #fff; font: 16px sans-serif }"
_TEXTS = """<!doctype html><html lang="en"><title>Texts</title><style>{}</style>
<main id="known"><p>Dark enough</p><h1>Texts</h1><section><p id="other">Dark enough, too</p></section></main></html>"""


_WRONG = (
    "#other { color: #999 }",
    "section { background: #bbb }",
    "section { opacity: 0.5 }",
    "h1 { height: 200px; background: #444; color: #fff } #other { position: absolute; top: 150px }",
    "h1 { color: #888 } #other { color: #888 }",  # which is enough for a heading
    "@media (prefers-color-scheme: dark) { section { background: #333 } }",
)


def test_axe_measures_the_contrast_of_texts_that_are_not_known_to_be_right(chrome: Browser) -> None:
    with chrome.new_context(color_scheme="dark") as context:
        page = context.new_page()
        page.set_content(_TEXTS.format(_KNOWN))
        assert violations(page, COLOURS) == []
        for style in _WRONG:
            page.set_content(_TEXTS.format(_KNOWN + style))
            for _ in range(2):  # what is wrong is not known to be right
                assert [wrong.partition(":")[0] for wrong in violations(page, COLOURS)] == ["color-contrast"], style


_TARGETS = """<!doctype html><html lang="en"><title>Targets</title><style>
button {{ border: 0; padding: 0; width: 16px; height: 16px }} main {{ display: flex; gap: 8px }} {}
</style><main><button>A</button><button id="other">B</button></main></html>"""


def test_axe_measures_the_size_of_targets_that_have_too_little_room(chrome: Browser) -> None:
    with chrome.new_context() as context:
        page = context.new_page()
        for style in ("", "button { width: 24px; height: 24px } main { gap: 0 }"):
            page.set_content(_TARGETS.format(style))
            assert violations(page, PLACES) == []
        for style in ("main { gap: 2px }", "button { width: 40px; height: 40px } #other { margin-left: -30px }"):
            page.set_content(_TARGETS.format(style))
            assert [wrong.partition(":")[0] for wrong in violations(page, PLACES)] == ["target-size"], style
