"""The lists of nodes: trees and their levels, searches, pages, and the choice of a node."""

import re

import pytest

from tests.admin.conftest import MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Events, MakeKey, Run
from tests.panel_client import PanelClient
from trellis.admin.app import Panel
from trellis.admin.nodes import find_actions, tree
from trellis.compose import compose
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Field, Groups, Text, Timestamp
from trellis.core.kind import NodeKind
from trellis.core.operation import Basis
from trellis.core.verbs import RESTORE
from trellis.kinds import KINDS
from trellis.settings import Settings

SHELVES = NodeKind(
    name="shelves",
    singular="shelf",
    title="Shelves",
    application="Library",
    path="/library/shelves",
    doc="Where books stand.",
    code="Z999",
    tree=True,
    fields=(
        Field("label", Text(20, 1), "What is written on it.", required=True),
        Field("opened", Timestamp(nullable=True), "Since when."),
        Field("readers", Groups(), "Who may read there.", default="*"),
    ),
    options={"browse": "Look at the books."},
)
SCRIPT = "<script>alert(1)</script>"


def _names(text: str) -> list[str]:
    return re.findall(r'class="node-name"[^>]*>([^<]*)<', text)


def test_the_tree_shows_the_top_level_with_what_is_under_it_counted(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    response = admin.get("/forums")
    assert response.status_code == 200
    assert _names(response.text) == ["News", "Help", "Wiki", "Staff"]
    assert "7 forums , 4 at the top level" in page_text(response)
    assert f'data-id="{community.news}"' in response.text
    assert 'data-count="2"' in response.text
    assert "Redirect" in page_text(response)
    assert events() == before


def test_levels_open_by_links_alone(admin: Visitor, community: Community) -> None:
    page = admin.get("/forums")
    link = re.search(r'class="toggle" href="/admin(/forums\?open=\d+)#node-\d+"', page.text)
    assert link is not None
    opened = admin.get(link[1])
    assert _names(opened.text) == ["News", "Releases", "Interviews", "Help", "Wiki", "Staff"]
    deeper = admin.get(f"/forums?open={community.news},{community.releases}")
    assert _names(deeper.text)[:4] == ["News", "Releases", "Betas", "Interviews"]
    closing = re.search(
        rf'href="/admin(/forums\?open={community.releases})#node-{community.news}" aria-expanded="true"', deeper.text
    )
    assert closing is not None
    assert _names(admin.get(closing[1]).text) == ["News", "Help", "Wiki", "Staff"]


def test_a_node_opens_by_its_link_alone_however_many_are_open(admin: Visitor, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MOST_OPEN", 3)
    tops = [run("forums.create", name=f"Bed {number}")["id"] for number in range(4)]
    for top in tops:
        run("forums.create", name=f"Row of {top}", parentId=top)
    for opened in (tops[1:], tops[:-1]):  # what is closed is the first one, or the last one
        page = admin.get(f"/forums?open={','.join(map(str, opened))}")
        closed = next(top for top in tops if top not in opened)
        link = re.search(rf'id="node-{closed}".*?class="toggle" href="/admin(/forums\?[^"#]*)', page.text, re.DOTALL)
        assert link is not None
        assert f"Row of {closed}" in _names(admin.get(link[1]).text)
        closing = re.search(rf'id="node-{opened[0]}".*?class="toggle" href="/admin(/forums\?[^"#]*)', page.text, re.DOTALL)
        assert closing is not None
        assert f"Row of {opened[0]}" not in _names(admin.get(closing[1]).text)


def test_a_level_for_scripts_is_rows_and_nothing_else(admin: Visitor, community: Community) -> None:
    response = admin.get(f"/forums/level?under={community.news}&depth=1")
    assert response.text.lstrip().startswith("<li")
    assert _names(response.text) == ["Releases", "Interviews"]


def test_one_level_has_a_page_of_its_own(admin: Visitor, community: Community) -> None:
    response = admin.get(f"/forums?under={community.news}")
    assert "2 directly under it" in page_text(response)
    assert _names(response.text) == ["Releases", "Interviews"]
    assert admin.get("/forums?under=999").status_code == 404


def test_wide_levels_come_in_pages(admin: Visitor, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "PER_LEVEL", 10)
    for number in range(13):
        run("calendars.create", name=f"C{number}")
    first = admin.get("/calendars")
    assert len(_names(first.text)) == 10
    assert "3 more" in page_text(first)
    assert "Page 1 of 2" in page_text(first)
    assert _names(admin.get("/calendars?page=2").text) == ["C10", "C11", "C12"]
    assert _names(admin.get("/calendars/level?page=2").text) == ["C10", "C11", "C12"]


def test_an_address_without_sense_is_passed_over(admin: Visitor, community: Community) -> None:
    for query in ("open=x,0,-1,99999999999999999999", "page=0", "page=-5", "page=zzz", "under=", "under=zzz"):
        assert admin.get(f"/forums?{query}").status_code == 200, query


def test_whoever_is_beyond_the_last_page_since_rows_have_gone_is_led_to_it(
    admin: Visitor, community: Community, key: MakeKey
) -> None:
    key(), key()
    for path, last in (
        ("/forums?page=99999999", "/forums"),
        ("/forums?open=1&page=2", "/forums?open=1"),
        ("/forums?under=1&page=2", "/forums?under=1"),
        ("/forums?search=e&page=2", "/forums?search=e"),
        ("/groups?page=2", "/groups"),
        ("/groups/3/access?kind=forums&all=1&page=2", "/groups/3/access?kind=forums&all=1"),
        ("/keys?state=active&page=2", "/keys?state=active"),
        ("/keys?perPage=1&page=3", "/keys?perPage=1&page=2"),
        ("/proposals?page=2", "/proposals"),
    ):
        assert admin.get(path).headers["location"] == f"/admin{last}"
        assert admin.get(last).status_code == 200, last


@pytest.mark.either_engine
def test_an_empty_list_says_how_to_begin(admin: Visitor) -> None:
    for kind in KINDS:
        response = admin.get(f"/{kind.name}")
        assert response.status_code == 200
        if kind.name != "groups":
            assert f"Create the first {kind.singular}" in page_text(response)


def test_a_search_finds_names_wherever_they_stand(admin: Visitor, community: Community) -> None:
    found = admin.get("/forums?search=E")
    assert "5 of 7 forums" in page_text(found)
    assert "News > Releases" in page_text(found)
    assert f'href="/admin/forums/{community.betas}"' in found.text
    nothing = admin.get("/forums?search=zebra")
    assert "No matches" in page_text(nothing)
    assert admin.get("/forums?search=%00%0a%ff").status_code == 200
    assert admin.get("/forums?search=" + "x" * 5000).status_code == 200


@pytest.mark.either_engine
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.name))
def test_a_script_in_a_name_or_description_does_not_run(admin: Visitor, run: Run, kind: object) -> None:
    fields = {f.name for f in kind.fields}  # type: ignore[attr-defined]
    more = {"description": f"<p>{SCRIPT}<img src=x onerror=alert(1)></p>"} if "description" in fields else {}
    made = run(f"{kind.name}.create", name=SCRIPT + '"><b>', **more)  # type: ignore[attr-defined]
    here = f"/{kind.name}"  # type: ignore[attr-defined]
    paths = [here, f"{here}?search=script", f"{here}/new", *(f"{here}/{made['id']}{end}" for end in ("", "/delete"))]
    paths += [f"{here}/{made['id']}/move"] if kind.ordered else []  # type: ignore[attr-defined]
    paths += [f"{here}/{made['id']}/access"] if kind.is_group else []  # type: ignore[attr-defined]
    paths += ["/forums/new", f"{here}/find?search=s"]
    for path in paths:
        response = admin.get(path)
        assert response.status_code == 200
        if "json" not in response.headers["content-type"]:
            assert "<script>alert" not in response.text, path
            assert "onerror" not in response.text, path
            assert '"><b>' not in response.text, path
    gone = admin.post(f"{here}/{made['id']}", {"name": SCRIPT, "_version": "old"})
    assert gone.status_code == 409
    assert "<script>alert" not in gone.text


def test_nodes_are_found_by_their_names_for_a_choice(admin: Visitor, community: Community) -> None:
    found = admin.get("/forums/find?search=e&parents=1").json()
    assert {one["name"] for one in found["results"]} == {"News", "Releases", "Betas", "Interviews", "Help"}
    assert {"id": community.betas, "name": "Betas", "path": "News > Releases"} in found["results"]
    assert "Wiki" not in str(admin.get("/forums/find?search=wiki&parents=1").json())  # a redirect has no children
    without = admin.get(f"/forums/find?search=e&parents=1&not={community.news}").json()
    assert {one["name"] for one in without["results"]} == {"Help"}
    assert admin.get("/forums/find?search=&parents=x&not=zzz").status_code == 200


@pytest.mark.either_engine
def test_every_operation_of_every_kind_can_be_reached(admin: Visitor, community: Community, run: Run) -> None:
    """The list and each node's page link to every page of the kind, and each write has its form."""
    catalogue: Catalogue = admin.client.app.runner.gate.catalogue  # type: ignore[attr-defined]  # the panel
    reached: set[str] = set()
    for kind in KINDS:
        one = run(f"{kind.name}.create", name="One")["id"]
        listed = admin.get(f"/{kind.name}")
        assert listed.status_code == 200
        reached.add(kind.operation("list"))
        assert f'href="/admin/{kind.name}/new"' in listed.text
        assert ("_action", "save") in find_form(admin.get(f"/{kind.name}/new"), f"/{kind.name}/new").buttons
        reached.add(kind.operation("create"))
        shown = admin.get(f"/{kind.name}/{one}")
        assert f'href="/admin/{kind.name}/' in listed.text
        reached.add(kind.operation("get"))
        assert ("_action", "save") in find_form(shown, f"/{kind.name}/{one}").buttons
        reached.add(kind.operation("update"))
        assert f'href="/admin/{kind.name}/{one}/delete"' in shown.text
        assert ("_action", "delete") in find_form(admin.get(f"/{kind.name}/{one}/delete"), "/delete").buttons
        reached.add(kind.operation("delete"))
        for operation, verb in find_actions(catalogue, kind):
            assert f'href="/admin/{kind.name}/{one}/{verb.name}"' in shown.text
            assert ("_action", "save") in find_form(admin.get(f"/{kind.name}/{one}/{verb.name}"), f"/{verb.name}").buttons
            reached.add(operation.name)
        assert f"/admin/events?resource={kind.name}&amp;resourceId={one}" in shown.text
    with_page = (o for o in catalogue.values() if o.kind is not None and o.verb not in {None, RESTORE})
    assert reached == {o.name for o in with_page if o.access.basis is not Basis.IMPLIED and not o.path_field}


def test_a_new_kind_needs_no_page(settings: Settings, mira: int, visitor: MakeVisitor) -> None:
    gate = compose(settings, (*KINDS, SHELVES))
    with PanelClient(Panel(gate, settings), "http://panel.example", client=("192.0.2.7", 50000)) as client:
        admin = Visitor(client)
        assert admin.sign_in().status_code == 303
        assert "Create the first shelf" in page_text(admin.get("/shelves"))
        new = find_form(admin.get("/shelves/new"), "/new")
        refused = admin.post("/shelves/new", new.filled(name="A"))
        assert (refused.status_code, "Label" in page_text(refused)) == (400, True)
        assert admin.post("/shelves/new", new.filled(name="A", label="Novels")).status_code == 303
        assert _names(admin.get("/shelves").text) == ["A"]
        one = find_form(admin.get("/shelves/1"), "/1")
        assert one["label"] == "Novels"
        assert admin.post("/shelves/1", one.filled(("permissions.browse", "3"), label="Plays")).status_code == 303
        assert _names(admin.get("/shelves/level").text) == ["A"]
        assert "browse" in page_text(admin.get("/groups/3/access?kind=shelves&option=browse")).lower()
        gone = find_form(admin.get("/shelves/1/delete"), "/delete")
        assert admin.post("/shelves/1/delete", gone.filled(_action="delete")).status_code == 303
    gate.store.close()
