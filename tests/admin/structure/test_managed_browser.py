"""Moving a node that a structure document manages, in a real Chromium."""

import pytest
from playwright.sync_api import Browser, expect

from tests.admin.conftest import LetIn
from tests.admin.structure.documents import GARDEN
from tests.browser import opened
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_note_follows_a_managed_node_that_is_dragged(chrome: Browser, service: Service, let_in: LetIn, run: Run) -> None:
    run("structure.apply", document=GARDEN)
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/forums")
    page.get_by_role("button", name="Move Beds: drag").press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This forum is managed by the document “garden”: the next apply moves it back.")).to_be_visible()
    context.close()
