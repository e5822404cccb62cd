"""Structure documents in a real Chromium: a dropped file is planned, applied and undone; and axe on each face of the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.admin.structure.documents import GARDEN
from tests.browser import LOOKS, faults, list_complaints, opened
from tests.community import Community
from tests.fixture_types import Events, Run
from tests.service_process import Service

pytestmark = pytest.mark.browser

_DROP = """([text, name]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([text], name));
  const area = document.querySelector("textarea[name=document]");
  for (const type of ["dragenter", "dragover", "drop"]) {
    area.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }
}"""


def _drop(page: Page, text: str, name: str = "garden.yaml") -> None:
    expect(page.get_by_text("or drop one onto the text")).to_be_visible()
    page.evaluate(_DROP, [text, name])


def test_a_dropped_file_is_planned_applied_and_undone(
    chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run, events: Events
) -> None:
    del community
    before = run("forums.list", perPage=1000)["results"]
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    page.goto("/admin")
    page.get_by_role("link", name="Structure").click()
    _drop(page, GARDEN)
    expect(page.get_by_text("garden.yaml, 1 KiB, was loaded into the text below.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Document")).to_have_value(GARDEN)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("heading", name="What applying garden would do")).to_be_visible()
    expect(page.locator("table.plan tbody tr")).to_have_count(3)
    assert run("forums.list", perPage=1000)["results"] == before
    page.get_by_label("Why").fill("Spring")
    page.get_by_role("button", name="Apply this plan").click()
    expect(page.locator(".flash")).to_contain_text("garden was applied: 3 created.")
    assert {one["name"] for one in run("forums.list", perPage=1000)["results"]} >= {"Beds", "Roses", "Compost"}
    assert [event["reason"] for event in events()[-3:]] == ["Spring"] * 3
    page.get_by_role("link", name="Undo the change set…").click()
    page.get_by_role("button", name="Undo 3 events").click()
    expect(page.locator(".flash")).to_contain_text("3 events were undone.")
    assert run("forums.list", perPage=1000)["results"] == before
    context.close()
    assert list_complaints(said) == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_chosen_file_and_the_lines_of_its_faults(chrome: Browser, service: Service, let_in: LetIn, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(GARDEN.replace("name: Roses", "name: Roses\n        colour: red"), encoding="utf-8")
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/structure")
    page.get_by_label("Choose a file…").set_input_files(file)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("line 10: A forum has no 'colour'")
    page.get_by_role("link", name="Show line 10").click()
    chosen = "() => { const t = document.activeElement; return t.value.slice(t.selectionStart, t.selectionEnd) }"
    assert page.evaluate(chosen) == "        colour: red"
    typed = page.get_by_role("textbox", name="Document").input_value()
    for encoding in ("latin-1", "utf-16"):
        file.write_bytes(GARDEN.replace("Roses", "Möhren").encode(encoding))
        page.get_by_label("Choose a file…").set_input_files(file)
        expect(page.get_by_text("wrong.yaml is not UTF-8 text")).to_be_visible()
        expect(page.get_by_role("textbox", name="Document")).to_have_value(typed)
        _drop(page, GARDEN)
        expect(page.get_by_text("garden.yaml, 1 KiB")).to_be_visible()
        typed = GARDEN
    _drop(page, "x" * (8 * 2**20 + 1), "huge.yaml")
    expect(page.get_by_text("huge.yaml is larger than 8 MiB.")).to_be_visible()
    context.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run) -> None:
    run("structure.apply", document=GARDEN)
    beds = next(one["id"] for one in run("forums.list", perPage=100)["results"] if one["externalId"] == "beds")
    run("forums.update", beds, name="By hand")
    run("groups.update", community.patrons, externalId="patrons")
    meant = f"""\
format: trellis/1
name: garden
forums:
  - externalId: beds
    name: Beds
    description: <p>{"Roses, tulips and what else grows in beds. " * 4}</p>
    permissions: {{view: [patrons, members], read: "*"}}
  - {{externalId: roses, name: Roses}}
  - {{externalId: help, name: Help, password: sesame}}
  - {{externalId: {"an-external-id-without-any-place-to-break" * 3}, name: {"Long" * 40}}}
"""
    planned = "What applying garden would do"
    documents = {
        "plan": (meant, True, planned),
        "faults": (meant.replace("name: Help", "name: Help, colour: red"), False, "The document has 1 error."),
        "kept": (meant, False, planned),
    }
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    found = {}
    for name, (document, prune, shown) in documents.items():
        page.goto("/admin/structure")
        _drop(page, document)
        expect(page.get_by_text("was loaded into the text below.")).to_be_visible()
        page.get_by_role("checkbox", name="Delete what").set_checked(prune)
        page.get_by_role("textbox", name="Delete at most").fill("100")
        page.get_by_role("button", name="Plan", exact=True).click()
        expect(page.get_by_text(shown).first).to_be_visible()
        if name == "plan":
            page.locator("summary", has_text="Document and options").click()
        if wrong := faults(page, LOOKS if name != "kept" else LOOKS[1:]):  # which has little that is not in the plan
            found[name] = wrong
    context.close()
    assert found == {}, "\n".join(f"{where}: {what}" for where, what in found.items())
