"""The documentation as a site: it is built as by `make docs`, every link leads somewhere, and its search finds things."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import expect

from scripts.errors_page import errors_page
from tests.browser import chromium, opened

ROOT: Final = Path(__file__).parents[2]


def test_the_page_of_errors_is_that_of_the_code() -> None:
    written = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == errors_page(), "The errors have changed: run `make snapshot`, and look at the difference."


@pytest.mark.slow
@pytest.mark.browser
def test_the_site_is_built_without_a_complaint_and_searched(tmp_path: Path) -> None:
    (command,) = re.findall(r"^docs:.*\n\t@\$\(BIN\)/(sphinx-build .*?) build/site$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    # A link to a page, heading or file that is not there is a warning, and warnings are errors; so is a page that no other names.
    done = subprocess.run(
        [Path(sys.executable).parent / "sphinx-build", *command.split()[1:], "--jobs=1", tmp_path],  # more of them do more in all
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    asked = []
    with chromium() as browser, opened(browser, f"file://{tmp_path}/") as window:
        page = window.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{tmp_path}/index.html")
        page.wait_for_url("**/docs/index.html")
        page.get_by_placeholder("Search").fill("idempotency")
        page.get_by_placeholder("Search").press("Enter")
        expect(page.get_by_text("Search finished")).to_be_visible()  # until then, what it has found moves
        page.locator("#search-results").get_by_role("link", name="Guide", exact=True).first.click()
        expect(page.get_by_role("heading", name="Idempotency").first).to_be_visible()
    assert all(url.startswith("file:") for url in asked), asked
