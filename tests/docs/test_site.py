"""The documentation as a site: every link leads somewhere, pages are built as by `make docs`, and its search finds things."""

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


def build(site: Path, builder: str, *pages: str) -> None:
    """Build pages of the site, or all, with the command of `make docs`.

    A link to a page, heading or file that is not there is a warning, and warnings are errors; so is a page that no other names.
    Where some pages are built, that the others are not searched is a warning too.
    """
    (command,) = re.findall(r"^docs:.*\n\t@\$\(BIN\)/(sphinx-build .*?) build/site$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    options = [option for option in command.split()[1:] if not (pages and option == "--fail-on-warning")]
    done = subprocess.run(
        # More jobs do more in all.
        [Path(sys.executable).parent / "sphinx-build", *options, "--builder", builder, "--jobs=1", site, *pages],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.browser
def test_the_site_is_built_without_a_complaint_and_searched(tmp_path: Path) -> None:
    build(tmp_path, "dummy")  # reads every page and follows its links, and writes none
    build(tmp_path, "html", "docs/index.md", "docs/guide.md")
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
