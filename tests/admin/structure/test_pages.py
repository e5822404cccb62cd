"""The page of structure documents: exporting a file, planning a document and applying the plan; without scripts."""

import asyncio
import re
from typing import Any

import orjson
import pytest

from tests.admin.conftest import MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.structure.documents import GARDEN, apply, document_form, plan
from tests.community import Community
from tests.fixture_types import Clock, Events, Run
from tests.loop_meter import LoopMeter, send_request
from trellis.admin.app import Panel
from trellis.core.gate import Gate
from trellis.core.structure import read_document
from trellis.kinds import KINDS
from trellis.settings import Settings


def _names(run: Run) -> list[str]:
    return [one["name"] for one in run("forums.list", perPage=1000)["results"]]


def _find(run: Run, external_id: str) -> dict[str, Any]:
    return next(one for one in run("forums.list", perPage=1000)["results"] if one["externalId"] == external_id)


def _apply_garden(admin: Visitor, document: str = GARDEN, **options: str) -> int:
    """Apply the document; return its change set."""
    response = apply(admin, plan(admin, document, **options))
    assert response.status_code == 303, page_text(response)
    return int(re.fullmatch(r"/admin/events\?changeSet=(\d+)", response.headers["location"])[1])  # type: ignore[index]


# --- export -------------------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_it_is_in_the_menu(admin: Visitor) -> None:
    assert '<a href="/admin/structure">' in admin.get("").text
    assert 'href="/admin/structure" aria-current="page"' in admin.get("/structure").text


@pytest.mark.usefixtures("community")
def test_all_is_exported_as_yaml(admin: Visitor, clock: Clock) -> None:
    form = find_form(admin.get("/structure"), "/export")
    sections = [value for name, value in form.pairs if name == "sections"]
    assert (sections[:3], sections[-1]) == (["forums", "calendars", "categories"], "groups")
    assert sorted(sections) == sorted(kind.name for kind in KINDS)
    response = admin.get("/structure/export", params=form.filled())
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/yaml"
    assert response.headers["content-disposition"] == f'attachment; filename="structure-{clock.text[:10]}.yaml"'
    assert response.headers["cache-control"] == "no-store"
    document = read_document(response.text)
    assert [one["name"] for one in document["forums"]] == ["News", "Help", "Wiki", "Staff"]
    assert {"groups", "blogs", "categories", "calendars"} <= set(document)


@pytest.mark.usefixtures("community")
def test_chosen_sections_are_exported_as_json(admin: Visitor) -> None:
    response = admin.get("/structure/export", params={"sections": ["calendars", "groups"], "format": "json"})
    assert response.headers["content-type"] == "application/json"
    assert response.headers["content-disposition"].endswith('.json"')
    document = orjson.loads(response.content)
    assert set(document) == {"format", "name", "groups", "calendars"}
    assert [one["name"] for one in document["calendars"]] == ["Meetups", "Holidays"]


def test_what_is_below_one_node_is_exported(admin: Visitor, run: Run) -> None:
    top = run("forums.create", name="Top", externalId="top")["id"]
    run("forums.create", name="Below", externalId="below", parentId=top)
    form = find_form(admin.get("/structure"), "/export")
    assert ("under", "") in form.pairs
    document = read_document(admin.get("/structure/export", params={"sections": "forums", "under": " top "}).text)
    assert (document["under"], [one["name"] for one in document["forums"]]) == ("top", ["Below"])


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"under": "top"}, "under needs exactly one section"),
        ({"under": "top", "sections": "calendars"}, "under needs exactly one section"),
        ({"under": "nowhere", "sections": "forums"}, "there is no forum with the external id 'nowhere'"),
    ],
)
def test_what_cannot_be_exported_stays_chosen(admin: Visitor, query: dict[str, str], told: str) -> None:
    page = admin.get("/structure/export", params={**query, "format": "json"})
    form = find_form(page, "/export")
    assert (page.status_code, told in page_text(page)) == (400, True)
    assert (form["under"], form["format"]) == (query["under"], "json")
    if "sections" in query:
        assert [value for name, value in form.pairs if name == "sections"] == [query["sections"]]


@pytest.mark.either_engine
@pytest.mark.parametrize("text", [GARDEN, "format: trellis/1\nname: site\nforums: x\n"])
def test_a_document_is_parsed_once_a_request(admin: Visitor, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    page = plan(admin, GARDEN)
    parsed: list[str] = []

    def read(sent: str) -> Any:
        parsed.append(sent)
        return read_document(sent)

    monkeypatch.setattr("trellis.core.structure.document.read_document", read)
    form = document_form(page)
    admin.post("/structure", form.filled(document=text, _action="apply"))
    assert parsed == [text]


@pytest.mark.either_engine
def test_an_unknown_section_is_refused_on_the_page(admin: Visitor) -> None:
    response = admin.get("/structure/export?sections=galleries")
    assert response.status_code == 400
    assert "there is no section 'galleries'" in page_text(response)
    assert "content-disposition" not in response.headers


# --- plan and apply -----------------------------------------------------------------------------------------------


def test_what_a_document_creates_is_planned_and_applied(admin: Visitor, run: Run, events: Events) -> None:
    before = events()
    page = plan(admin, GARDEN)
    text = page_text(page)
    assert page.status_code == 200
    assert "What applying garden would do Nothing is changed yet. Create 3" in text
    assert "Create Forum Beds beds Line 4" in text
    assert "Create Forum Beds > Roses roses Line 8" in text
    assert (events(), _names(run)) == (before, [])
    assert document_form(page)["document"] == GARDEN
    response = apply(admin, page, reason="Spring")
    assert response.status_code == 303
    new = events()[len(before) :]
    (change_set,) = {event["changeSet"] for event in new}
    assert response.headers["location"] == f"/admin/events?changeSet={change_set}"
    assert [event["operation"] for event in new] == ["forums.create"] * 3
    assert {(event["actor"]["name"], event["reason"]) for event in new} == {("Mira Holm", "Spring")}
    assert sorted(_names(run)) == ["Beds", "Compost", "Roses"]
    landed = admin.get(f"/events?changeSet={change_set}")
    assert "garden was applied: 3 created." in page_text(landed)
    undone = admin.get(f"/change-sets/{change_set}/undo")
    form = find_form(undone, "/undo")
    assert admin.post(f"/change-sets/{change_set}/undo", form.filled()).status_code == 303
    assert _names(run) == []


def test_a_plan_that_is_sent_twice_is_told_as_carried_out(admin: Visitor, run: Run, events: Events) -> None:
    page = plan(admin, GARDEN)
    first = apply(admin, page)
    before = events()
    second = apply(admin, page)
    assert (second.status_code, second.headers.get("location")) == (303, first.headers["location"]), page_text(second)
    told = page_text(admin.get(second.headers["location"].removeprefix("/admin")))
    assert "garden was applied: the community matches the document." in told
    assert "New keys" not in told
    assert (events(), len(_names(run))) == (before, 3)


def test_a_plan_that_somebody_else_has_carried_out_is_told_as_outdated(admin: Visitor, run: Run) -> None:
    page = plan(admin, GARDEN)
    run("structure.apply", document=GARDEN)
    refused = apply(admin, page)
    assert refused.status_code == 409
    assert "The plan was not carried out." in page_text(refused)
    assert "Nothing: the community already matches the document." in page_text(refused)


def test_nothing_to_do_is_said_and_cannot_be_applied(admin: Visitor) -> None:
    _apply_garden(admin)
    page = plan(admin, GARDEN)
    assert "Nothing: the community already matches the document." in page_text(page)
    assert "data-cancel><span>Done</span>" in page.text  # leaves without asking
    assert ("_action", "apply") not in document_form(page).buttons


def test_changes_are_shown_by_member_with_the_names_of_groups_and_parents(admin: Visitor, run: Run, community: Community) -> None:
    _apply_garden(admin)
    run("groups.update", community.patrons, externalId="patrons")
    roses = _find(run, "roses")["id"]
    changed = """\
format: trellis/1
name: garden
forums:
  - {externalId: beds, name: Flower beds, permissions: {view: [patrons]}}
  - {externalId: compost, name: Compost, children: [{externalId: roses, name: Roses}]}
"""
    text = page_text(page := plan(admin, changed))
    assert "Change 1 Move 1" in text
    assert "Change Forum Flower beds beds Name removed: Beds added: Flower beds Permissions View removed: every group" in text
    assert "added: Patrons" in text
    assert "Move Forum Compost > Roses roses Under removed: Beds added: Compost" in text
    assert f'href="/admin/forums/{roses}"' in page.text
    assert "Line 5" in text
    apply(admin, page)
    assert run("forums.get", roses)["path"] == "Compost > Roses"
    assert run("forums.get", _find(run, "beds")["id"])["permissions"]["view"] == [community.patrons]


def test_what_was_changed_by_hand_is_told_with_its_event(admin: Visitor, run: Run, events: Events) -> None:
    _apply_garden(admin)
    compost = _find(run, "compost")["id"]
    run("forums.update", compost, name="Heap")
    event = events()[-1]["seq"]
    page = plan(admin, GARDEN)
    assert f"Changed by hand since the last apply: event {event}" in page_text(page)
    assert f'<a href="/admin/events/{event}">' in page.text
    meant = plan(admin, GARDEN.replace("Roses", "Tulips"))
    assert page_text(meant).count("Changed by hand") == 1


def test_deletes_are_planned_with_what_is_below_and_need_to_be_allowed(admin: Visitor, run: Run) -> None:
    _apply_garden(admin)
    less = "format: trellis/1\nname: garden\nforums:\n  - {externalId: compost, name: Compost}\n"
    kept = plan(admin, less)
    assert "2 nodes are not in the document and will be kept: forum Beds, forum Roses." in page_text(kept)
    refused = plan(admin, less, prune="1", maxDeletes="1")
    assert refused.status_code == 409
    assert "2 nodes would be deleted, and at most 1 may be" in page_text(refused)
    assert "maxDeletes" not in page_text(refused)
    assert "allow it in the options below" in page_text(refused)
    assert "--max-deletes" not in page_text(refused)
    form = document_form(refused)
    assert (form["document"], form["prune"], form["maxDeletes"]) == (less, "1", "1")
    page = plan(admin, less, prune="1", maxDeletes="2")
    assert "Delete 2 " in page_text(page)
    assert "Delete Forum Beds beds With 1 below it" in page_text(page)
    apply(admin, page)
    assert _names(run) == ["Compost"]


def test_an_empty_section_needs_to_be_allowed(admin: Visitor) -> None:
    empty = "format: trellis/1\nname: garden\nforums: []\n"
    refused = plan(admin, empty)
    assert refused.status_code == 409
    assert "There is nothing in forums. If this is intended, allow it in the options below." in page_text(refused)
    assert plan(admin, empty, allowEmpty="1").status_code == 200


@pytest.mark.usefixtures("community")
def test_nodes_that_are_there_can_be_taken_over(admin: Visitor, run: Run, community: Community) -> None:
    help_ = "format: trellis/1\nname: garden\nforums:\n  - {externalId: help, name: Help}\n"
    text = page_text(plan(admin, help_))
    assert "1 entry in the document has the same path as an existing node without an external id." in text
    assert "Create Forum Help help" in text
    page = plan(admin, help_, adopt="1")
    assert "Taken over" in page_text(page)
    assert f'<a href="/admin/forums/{community.help}">' in page.text
    apply(admin, page)
    assert run("forums.get", community.help)["managedBy"] == "garden"


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_all_faults_are_listed_with_their_lines(admin: Visitor, run: Run) -> None:
    wrong = "format: trellis/1\nname: garden\nforums:\n  - externalId: a b\n    name: Beds\n    colour: red\n  - name: Roses\n"
    response = plan(admin, wrong)
    text = page_text(response)
    assert response.status_code == 400
    assert "The document has 3 errors. Nothing was changed." in text
    for words in ("line 4: externalId", "line 6: A forum has no 'colour'", "line 7: externalId is needed"):
        assert words in text
    assert re.findall(r'data-line="(\d+)"', response.text) == ["4", "6", "7"]
    assert document_form(response)["document"] == wrong
    assert _names(run) == []


@pytest.mark.either_engine
@pytest.mark.parametrize(("document", "words"), [("", "A document begins with"), ("a: [", "This is not YAML")])
def test_what_is_not_a_document_is_refused(admin: Visitor, document: str, words: str) -> None:
    response = plan(admin, document)
    assert response.status_code == 400
    assert words in page_text(response)


@pytest.mark.either_engine
def test_a_wrong_option_is_told(admin: Visitor) -> None:
    response = plan(admin, GARDEN, maxDeletes="many")
    assert response.status_code == 400
    assert "Delete at most" in page_text(response)
    assert "whole number" in page_text(response)


def test_an_outdated_plan_is_not_carried_out_and_says_what_has_changed(admin: Visitor, run: Run, events: Events) -> None:
    page = plan(admin, GARDEN)
    run("forums.create", name="Elsewhere")
    event = events()[-1]["seq"]
    response = apply(admin, page)
    text = page_text(response)
    assert response.status_code == 409
    assert "The plan was not carried out. 1 change has been made since the plan" in text
    assert f'<a href="/admin/events/{event}">' in response.text
    assert "1 node is not in the document and will be kept: forum Elsewhere." in text
    assert _names(run) == ["Elsewhere"]
    assert apply(admin, response).status_code == 303  # the new plan, which was shown with it
    assert "Beds" in _names(run)


def test_another_document_than_the_planned_one_is_not_applied(admin: Visitor, run: Run) -> None:
    response = apply(admin, plan(admin, GARDEN), document=GARDEN.replace("Roses", "Tulips"))
    assert response.status_code == 409
    assert "would not do what was planned" in page_text(response)
    assert "Create Forum Beds > Tulips roses" in page_text(response)
    assert _names(run) == []


def test_nothing_is_applied_without_a_plan(admin: Visitor, run: Run) -> None:
    form = document_form(admin.get("/structure"))
    page = admin.post("/structure", form.filled(document=GARDEN, _action="apply"))
    assert "Nothing is changed yet." in page_text(page)
    assert _names(run) == []


@pytest.mark.either_engine
def test_a_stale_form_plans_nothing_and_keeps_the_document(admin: Visitor) -> None:
    form = document_form(admin.get("/structure"))
    response = admin.post("/structure", form.filled(document=GARDEN, _action="plan"), csrf="0" * 64)
    assert response.status_code == 409
    assert "signed in since this form was opened" in page_text(response)
    assert document_form(response)["document"] == GARDEN


def test_nobody_gets_it_who_is_not_signed_in(visitor: MakeVisitor, mira: int, run: Run) -> None:
    somebody = visitor()
    somebody.get("/sign-in")
    for path in ("/structure", "/structure/export"):
        response = somebody.get(path)
        assert response.headers["location"].startswith("/admin/sign-in")
    assert somebody.post("/structure", {"document": GARDEN, "_action": "plan"}).status_code == 401
    assert somebody.post("/structure", {"document": GARDEN, "_action": "apply", "_plan": "1-2"}).status_code == 401
    assert _names(run) == []


# --- keys ---------------------------------------------------------------------------------------------------------

KEYS = "format: trellis/1\nname: garden\nkeys:\n  - {name: Sync, grants: [forums.list]}\n  - {name: Backup}\n"


def test_new_keys_are_shown_once(admin: Visitor, run: Run) -> None:
    page = plan(admin, KEYS)
    assert "Create Key Sync" in page_text(page)
    response = apply(admin, page)
    assert response.status_code == 200
    secrets = re.findall(r"trl_\w{8}_\w{38}", response.text)
    assert len(secrets) == 2
    assert "The keys are shown only once." in page_text(response)
    assert re.search(r'href="/admin/events\?changeSet=\d+"', response.text)
    assert sorted(key["name"] for key in run("keys.list")["results"]) == ["Backup", "Sync"]
    again = apply(admin, page)
    assert again.status_code == 303
    told = admin.get(again.headers["location"].removeprefix("/admin"))
    assert "New keys were shown once and cannot be shown again" in page_text(told)
    assert not re.search(r"trl_\w{8}_\w", told.text)


def test_keys_ask_for_the_password(admin: Visitor, run: Run, clock: Clock) -> None:
    page = plan(admin, KEYS)
    clock.move(minutes=20)
    for response in (plan(admin, KEYS), apply(admin, page)):
        assert response.status_code == 403
        assert "Enter your password" in page_text(response)
    assert run("keys.list")["results"] == []
    assert plan(admin, GARDEN).status_code == 200  # without keys it is not asked for


# --- large documents ----------------------------------------------------------------------------------------------


def _large(forums: int, description: int = 0) -> str:
    text = "x" * description
    entries = "".join(
        f"  - externalId: f{i}\n    name: Forum {i}\n" + (f"    description: {text}\n" if text else "") for i in range(forums)
    )
    return f"format: trellis/1\nname: garden\nforums:\n{entries}"


@pytest.mark.either_engine
def test_of_many_changes_the_first_are_shown(admin: Visitor) -> None:
    page = plan(admin, _large(503))
    assert "Create 503" in page_text(page)
    assert page.text.count('class="action"') == 500
    assert "And 3 more changes. The first 500 are shown." in page_text(page)


@pytest.mark.either_engine
def test_a_form_of_several_parts_is_read_in_full_and_blocks_nothing(admin: Visitor, gate: Gate, settings: Settings) -> None:
    """A form of 8 MiB, as a browser sends it: the event loop is not held for the time that reading, parsing or showing it takes."""
    document = _large(60, 8 * 2**20 // 61)
    csrf, cookies = admin.csrf, "; ".join(f"{name}={value}" for name, value in admin.client.cookies.items())
    parts = {"csrf": csrf, "_action": "plan", "document": document.replace("\n", "\r\n")}
    body = "".join(f'--cut\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts.items())
    headers = {"content-type": "multipart/form-data; boundary=cut", "cookie": cookies, "host": "panel.example"}
    panel = Panel(gate, settings)
    with LoopMeter() as meter:
        sent = send_request(panel, "POST", "/admin/structure", headers, f"{body}--cut--\r\n".encode())
        status, answer = asyncio.run(sent)
    assert len(body) > 8_000_000
    assert (status, b"The document has 60 errors" in answer) == (400, True)  # a description has at most 64 KiB
    assert document.encode() in answer.replace(b"\r\n", b"\n")
    assert meter.longest < 0.25


@pytest.mark.either_engine
def test_faults_are_told_in_the_language_of_the_panel(admin: Visitor) -> None:
    entries = (
        "  - {externalId: a, name: A}\n  - {externalId: a, name: B}\n  - {externalId: b c, name: C}\n  - {externalId: 5, name: D}\n"
    )
    admin.client.headers["accept-language"] = "de"
    told = page_text(plan(admin, f"{KEYS}  - {{name: Sync}}\nforums:\n{entries}"))
    for fault in (
        "Zeile 6: 'Sync' heißt schon ein anderer Schlüssel: Zeile 4.",
        "Zeile 9: 'a' ist schon die externalId eines anderen Eintrags (Forum): Zeile 8.",
        "Zeile 10: externalId muss Text aus 1 bis 255 sichtbaren Zeichen ohne Leerzeichen sein, nicht 'b c'.",
        "Zeile 11: externalId muss Text aus 1 bis 255 sichtbaren Zeichen ohne Leerzeichen sein, nicht 5. Setzen Sie es in",
    ):
        assert fault in told, told
