"""The search without scripts: a page with a form, what it finds and what can be done, and a key that was entered whole."""

import re
from typing import Any

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import MakeKey, Run

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def _hits(page: Any) -> list[tuple[str, str]]:
    """Return the titles of what was found, with the paths that they lead to."""
    shown = page.text.partition('<div class="found">')[2]
    found = re.findall(r'<li><a href="/admin([^"]*)"[^>]*>.*?<span class="hit-title">(.*?)</span>', shown, re.DOTALL)
    return [(re.sub("[\u2066-\u2069]", "", title), path) for path, title in found]


def test_records_pages_and_actions_are_found_by_what_is_typed(admin: Visitor, community: Community, key: MakeKey) -> None:
    key("forums.list", name="Calendar sync")
    for number in (2, 3):
        key("forums.list", name=f"Calendar {number}")
    admin.client.get("/admin/search")
    assert _hits(admin.get("/search?text=betas")) == [("Betas", f"/forums/{community.betas}")]
    assert "in News &gt; Releases" in re.sub("[\u2066-\u2069]", "", admin.get("/search?text=betas").text)
    found = _hits(admin.get("/search?text=cal"))
    assert found[0] == ("Calendars", "/calendars")
    assert ("Calendar sync", "/keys/1") in found
    assert _hits(admin.get("/search?text=new+forum+under+interv")) == [
        ("New forum under Interviews", f"/forums/new?parentId={community.interviews}")
    ]
    assert _hits(admin.get("/search?text=revoke+sync")) == [("Revoke key Calendar sync", "/keys/1/revoke")]
    assert _hits(admin.get("/search?text=Revoke+key+calendar+2")) == [("Revoke key Calendar 2", "/keys/2/revoke")]
    assert ("Move forum Staff", f"/forums/{community.staff}/move") in _hits(admin.get("/search?text=move+staff"))
    assert ("Revoke key …", "/search?text=revoke+key+") in _hits(admin.get("/search?text=revo"))
    assert [title for title, _ in _hits(admin.get("/search?text=revoke+key"))] == [
        "Revoke key Calendar 3",
        "Revoke key Calendar 2",
        "Revoke key Calendar sync",
    ]
    assert ("New forum", "/forums/new") in _hits(admin.get("/search"))
    assert "under Wiki" not in page_text(admin.get("/search?text=new+forum+under+wiki"))  # a redirect has no children
    assert ("Delete group Members", "/groups/3/delete") not in _hits(admin.get("/search?text=delete+members"))
    for path in [path for _, path in _hits(admin.get("/search")) + _hits(admin.get("/search?text=change+calendar"))]:
        assert admin.get(path).status_code in {200, 303}, path
    assert "Nothing found with this name" in page_text(admin.get("/search?text=xyzzy"))


@pytest.mark.parametrize(
    ("language", "typed", "found"),
    [
        ("en", "invite", ("Invite administrator", "/administrators/new")),
        ("en", "new+administrator", ("Invite administrator", "/administrators/new")),
        ("en", "sign+out", ("Sign out", "/sign-out")),
        ("en", "account", ("My account", "/account")),
        ("de", "administrator+einladen", ("Administrator einladen", "/administrators/new")),
        ("de", "abmelden", ("Abmelden", "/sign-out")),
    ],
)
def test_what_is_done_with_accounts_is_found(admin: Visitor, language: str, typed: str, found: tuple[str, str]) -> None:
    admin.client.headers["accept-language"] = language
    assert found in _hits(admin.get(f"/search?text={typed}"))
    assert admin.get(found[1]).status_code == 200


def test_the_page_to_sign_out_signs_out(admin: Visitor) -> None:
    assert admin.post("/sign-out", find_form(admin.get("/sign-out"), "/sign-out").filled()).status_code == 303
    assert admin.get("/sign-out").headers["location"] == "/admin/sign-in"


def test_what_is_new_may_be_created_too_and_has_its_endings_in_german(admin: Visitor, community: Community) -> None:
    assert ("New forum", "/forums/new") in _hits(admin.get("/search?text=create+forum"))
    assert _hits(admin.get("/search?text=create+forum+under+interv")) == [
        ("New forum under Interviews", f"/forums/new?parentId={community.interviews}")
    ]
    assert ("New key", "/keys/new") in _hits(admin.get("/search?text=create+key"))
    admin.client.headers["accept-language"] = "de"
    for typed in ("neues+forum", "neu+forum", "forum+anlegen", "neu"):
        assert ("Forum anlegen", "/forums/new") in _hits(admin.get(f"/search?text={typed}")), typed
    assert ("Kalender anlegen", "/calendars/new") in _hits(admin.get("/search?text=neuer+kalender"))
    assert ("Neuer Schlüssel", "/keys/new") in _hits(admin.get("/search?text=schlüssel+anlegen"))
    assert [path for _, path in _hits(admin.get("/search?text=neues+forum+unter+interv"))] == [
        f"/forums/new?parentId={community.interviews}"
    ]


@pytest.mark.parametrize(
    ("language", "typed", "leads"),
    [
        ("en", "revoke+revoke", True),
        ("en", "create+forum", True),
        ("de", "schlüssel+widerrufen+revoke", True),
        ("de", "widerrufen+revoke", True),
        ("de", "neues+forum", True),
        ("de", "forum+anlegen", True),
        ("de", "forum", False),
    ],
)
def test_what_is_to_be_done_comes_before_the_records_in_each_language(
    admin: Visitor, key: MakeKey, run: Run, language: str, typed: str, leads: bool
) -> None:
    for name in ("Revoke", typed.replace("+", " ")):
        key("forums.list", name=name)
        run("forums.create", name=name)
    admin.client.headers["accept-language"] = language
    shown = [path for _, path in _hits(admin.get(f"/search?text={typed}"))]
    record, action = shown.index("/forums/2"), min(at for at, path in enumerate(shown) if path.endswith(("/revoke", "/new")))
    assert (action < record) == leads, shown


def test_each_word_of_the_name_of_a_kind_may_be_left_out(admin: Visitor, community: Community, run: Run) -> None:
    music = run("categories.create", name="Music")["id"]
    for typed in ("delete+music", "delete+download+music", "delete+category+music", "delete+download+category+music"):
        found = _hits(admin.get(f"/search?text={typed}"))
        assert found == [("Delete download category Music", f"/categories/{music}/delete")], typed
    for verb in ("Move", "Change", "Copy"):
        assert f"{verb} download category Music" in [title for title, _ in _hits(admin.get(f"/search?text={verb}+music"))], verb


def test_records_to_which_an_action_does_not_apply_do_not_hide_those_to_which_it_does(
    admin: Visitor, key: MakeKey, run: Run
) -> None:
    for name in ("Calendar sync", *("Calendar" for _ in range(8))):
        key("forums.list", name=name)
    for number in range(2, 10):
        run("keys.revoke", number)
    assert _hits(admin.get("/search?text=revoke+calendar")) == [("Revoke key Calendar sync", "/keys/1/revoke")]


def test_each_action_leads_to_a_page(admin: Visitor, community: Community, key: MakeKey, run: Run) -> None:
    key("forums.list", name="Zebra")
    run("webhooks.create", url="https://hooks.example/", events=["forum.created"], description="Zebra")
    for resource in ("forums", "calendars", "categories", "groups", "blogs"):
        run(f"{resource}.create", name="Zebra")
    run("keys.pause", 1)
    led = []
    for words in ("new", "change", "move", "copy", "delete", "access", "revoke", "rotate", "resume", "requests", "activity"):
        led += _hits(admin.get(f"/search?text={words}+zebra"))
    led += _hits(admin.get("/search?text=new+forum+under+zebra")) + _hits(admin.get("/search?text=undo+event+1"))
    assert len({path for _, path in led}) >= 20
    for title, path in led:
        assert admin.get(path).status_code in {200, 303}, title


def test_a_role_finds_what_it_may_open(visitor: MakeVisitor, run: Run) -> None:
    run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, mustChangePassword=False, role="approver")
    ada = visitor()
    ada.sign_in("ada", PASSWORD)
    assert "/webhooks" not in [path for _, path in _hits(ada.get("/search"))]
    for path in ("/search?text=webhooks", "/search/hits?text=webhooks"):
        page = ada.get(path)
        assert (page.text.count("data-no-hits"), page.text.count("data-hits")) == (1, 0)
    run("forums.create", name="Webhooks")
    run("forums.create", name="Zebra")
    for words in ("webhooks", "new forum", "delete forum zebra", "revoke", "new webhook"):
        page = ada.get(f"/search?text={words.replace(' ', '+')}")
        assert page.text.count("<li><svg") == 0, words  # no line without its link
        for _, path in _hits(page):
            assert ada.get(path).status_code != 403, path


def test_a_whole_key_in_the_address_is_refused_and_shown_nowhere(admin: Visitor, visitor: Any, key: MakeKey) -> None:
    whole = key("forums.list", name="Plugin")
    for path in (f"/search?text={whole}", f"/search/hits?text={whole}"):
        page = admin.get(path)
        assert page.status_code == 400
        assert whole[13:] not in page.text
    assert f'href="/admin/search?text={whole[:12]}"' in admin.get(f"/search?text=Bearer+{whole}").text
    page = admin.get(f"/search?text={whole}")
    assert f'href="/admin/search?text={whole[:12]}"' in page.text
    assert "rotate the key" in page_text(page)
    signed_out = visitor().get(f"/search?text={whole}")
    assert signed_out.status_code == 303
    assert whole[13:] not in signed_out.headers["location"]
    assert _hits(admin.get(f"/search?text={whole[:12]}")) == [("Plugin", "/keys/1")]


def test_a_search_of_the_events_that_took_too_long_leads_to_all_of_them(
    admin: Visitor, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert community.news
    monkeypatch.setattr("trellis.store.events.scan._CHUNK", 1)
    monkeypatch.setattr("trellis.store.log_search.LONGEST", 0.0)
    assert 'href="/admin/events?requestId=a1b2c3d4%2Fe5"' in admin.get("/search?text=a1b2c3d4/e5").text
