"""What the door sees to before and after every page."""

import asyncio
import re
from itertools import cycle, product
from typing import Any, Final

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, before_writing, page_text
from tests.admin.everything import group_alike
from tests.admin.html_forms import find_form
from tests.community import CATALOGUE, Community
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.admin.nodes import delete
from trellis.admin.page import Page
from trellis.admin.sections import pages_of
from trellis.errors import Refused
from trellis.kinds import KINDS

_HEADERS = ("content-security-policy", "referrer-policy", "x-content-type-options", "x-frame-options", "cache-control")


def _path(page: Page) -> str:
    return re.sub(r"\{\w+(:int)?\}", "1", page.path)


PAGES = pages_of(CATALOGUE, KINDS)
_CLOSED = [page for page in PAGES if not page.open]
_WRITES = [page for page in PAGES if page.method == "POST"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # a session is looked for in one way for all pages
def test_no_page_answers_without_a_session(visitor: MakeVisitor, mira: int, events: Events) -> None:
    before = events()
    somebody = visitor()
    somebody.get("/sign-in")
    for page in _CLOSED:
        if page.method == "GET":
            response = somebody.get(_path(page))
            assert response.status_code == 303, page
            assert response.headers["location"].startswith("/admin/sign-in"), page
        else:
            response = somebody.post(_path(page))
            if page.renews:  # a browser that sends the form twice may have the cookie of the first response by then
                assert (response.status_code, response.headers["location"]) == (303, f"/admin{page.path}"), page
                continue
            assert response.status_code == 401, page
            assert "Sign in" in page_text(response), page
    assert events() == before
    assert len(_CLOSED) >= 15


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # it is refused before the database is asked
def test_no_write_from_another_site(admin: Visitor, events: Events) -> None:
    before = events()
    others = ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "https://evil.example"})
    for page, headers in zip(_WRITES, cycle(others)):  # they are told apart in one way for all pages
        assert admin.post(_path(page), headers=headers).status_code == 403, page
    assert events() == before


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # what a page shows of it is the same
def test_every_answer_has_the_headers_and_no_inline_scripts_or_styles(admin: Visitor, visitor: MakeVisitor) -> None:
    static = re.search(r'/admin(/static/[^"]+\.css)', admin.get("").text)
    assert static is not None
    alike = group_alike(page for page in PAGES if page.method == "GET")
    answers = [admin.get(_path(those[at % len(those)])) for at, those in enumerate(alike)]
    answers += [admin.get("/nowhere"), admin.get("/sign-out"), visitor().get(""), admin.post("/sign-out", csrf="")]
    for answer in (*answers, admin.get(static[1])):
        for name in _HEADERS:
            assert name in answer.headers, (answer.url, name)
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}
    assert "immutable" in admin.get(static[1]).headers["cache-control"]
    for answer in answers:
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", answer.text), answer.url
        # Besides the one of all pages, a single script: a module that two of them need would run twice.
        assert answer.text.count("<script") <= 2, answer.url


def test_a_stale_form_is_shown_again_with_what_was_typed(admin: Visitor, mira: int, events: Events) -> None:
    before = events()
    response = admin.post(f"/administrators/{mira}", {"name": "Mira Holm-Berg", "login": LOGIN}, csrf="0" * 64)
    assert response.status_code == 409
    assert 'value="Mira Holm-Berg"' in response.text
    assert "Mira Holm has signed in since this form was opened. Nothing has been changed yet." in page_text(response)
    assert events() == before
    again = admin.post(f"/administrators/{mira}", {"name": "Mira Holm-Berg", "login": LOGIN})
    assert again.status_code == 303
    assert len(events()) == len(before) + 1


def test_an_ended_session_loses_no_typed_text(admin: Visitor, mira: int, clock: Clock, run: Run) -> None:
    clock.move(hours=9)
    typed = "Mira\nHolm & <b>co</b>"
    lost = admin.post(f"/administrators/{mira}", {"name": typed, "login": LOGIN, "password": "never carried"})
    assert lost.status_code == 401
    assert "never carried" not in lost.text
    carried = {
        "login": LOGIN,
        "password": PASSWORD,
        "next": f"/admin/administrators/{mira}",
        "replay": "1",
        "carried-name": ["name", "login"],
        "carried-value": [typed, LOGIN],
    }
    back = admin.post("/sign-in", carried)
    assert back.status_code == 200
    assert f'action="/admin/administrators/{mira}"' in back.text
    assert "Mira\nHolm &amp; &lt;b&gt;co&lt;/b&gt;</textarea>" in back.text
    shown = admin.post(f"/administrators/{mira}", {"name": "Mira of old", "login": LOGIN}, csrf="")
    assert 'value="Mira of old"' in shown.text
    assert run("admins.get", mira)["name"] == "Mira Holm"


@pytest.mark.either_engine
def test_nobody_is_told_that_what_they_typed_is_kept_who_has_typed_nothing(admin: Visitor, key: MakeKey, clock: Clock) -> None:
    key("forums.list")
    stale = admin.post("/keys/1/resume", {"_submission": "a"}, csrf="0" * 64)
    assert "Nothing has been changed yet. Send it again." in page_text(stale)
    clock.move(hours=9)
    ended = admin.post("/keys/1/resume", {"_submission": "a"})
    assert "Your session has ended. Sign in again. Then you can continue where you left off." in page_text(ended)
    back = admin.post("/sign-in", find_form(ended, "/sign-in").filled(login=LOGIN, password=PASSWORD))
    assert "You are signed in again." in page_text(back)
    for page in (stale, ended, back):
        assert "typed" not in page_text(page)


@pytest.mark.either_engine
def test_a_stale_form_that_is_too_long_to_be_kept_is_not_said_to_be_there(admin: Visitor) -> None:
    few, many = (
        admin.post("/proposals", {"_action": "approve", "proposal": [str(n) for n in range(1, count)]}, csrf="0" * 64)
        for count in (10, 1000)
    )
    assert (few.status_code, "What you typed is still here" in page_text(few)) == (409, True)
    assert find_form(few, "/proposals").all("proposal") == [str(n) for n in range(1, 10)]
    assert many.status_code == 409
    assert "What you typed is still here" not in page_text(many)
    assert "Nothing has been changed. What you typed is too long to be kept: go back" in page_text(many)


@pytest.mark.either_engine
def test_what_was_too_long_to_be_kept_is_not_said_to_be_there(admin: Visitor, clock: Clock) -> None:
    document = {"document": "x" * 300_000, "_action": "plan"}
    clock.move(hours=9)
    lost = admin.post("/structure", document)
    assert "Your session has ended. Sign in again. What you typed was too long to be kept" in page_text(lost)
    back = admin.post("/sign-in", find_form(lost, "/sign-in").filled(login=LOGIN, password=PASSWORD))
    assert back.headers["location"] == "/admin/structure", page_text(back)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("letters", "is_kept"), [(125_000, True), (200_000, False)])
def test_signing_in_again_takes_what_was_kept_in_any_script(admin: Visitor, clock: Clock, letters: int, is_kept: bool) -> None:
    """A browser sends a letter of Greek, for example, in six bytes."""
    sent = {"document": (None, "\N{GREEK SMALL LETTER OMEGA}" * letters), "_action": (None, "plan"), "csrf": (None, admin.csrf)}
    clock.move(hours=9)
    lost: Any = admin.client.post("/admin/structure", files=sent)
    admin.csrf = find_form(lost, "/sign-in")["csrf"]
    assert ("What you typed is kept." in page_text(lost), "too long to be kept" in page_text(lost)) == (is_kept, not is_kept)
    back = admin.post("/sign-in", find_form(lost, "/sign-in").filled(login=LOGIN, password=PASSWORD))
    assert back.status_code == (200 if is_kept else 303), page_text(back)[:1000]
    if is_kept:
        again = admin.post("/structure", find_form(back, "/structure").filled(), csrf="")
        assert "\N{GREEK SMALL LETTER OMEGA}" * letters in again.text


@pytest.mark.either_engine
def test_what_was_too_long_to_be_kept_while_the_password_was_asked_for_is_not_sent(admin: Visitor, clock: Clock) -> None:
    clock.move(minutes=20)
    admin.get("/keys")
    lost = admin.post("/webhooks/new", {"url": "https://hooks.example/", "description": "x" * 300_000})
    assert "What you typed was too long to be kept" in page_text(lost)
    back = admin.post("/confirm-password", find_form(lost, "/confirm-password").filled(password=PASSWORD))
    assert back.headers["location"] == "/admin/webhooks/new", page_text(back)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # it is refused while it is read
def test_a_form_larger_than_a_mebibyte_is_refused_in_the_layout(admin: Visitor, mira: int, events: Events) -> None:
    before = events()
    response = admin.post(f"/administrators/{mira}", {"name": "x" * 5_000_000})
    assert response.status_code == 413
    assert "1 MiB" in page_text(response)
    assert events() == before


@pytest.mark.either_engine
def test_a_field_that_is_not_on_the_form_is_refused(admin: Visitor, mira: int, events: Events) -> None:
    before = events()
    response = admin.post(f"/administrators/{mira}", {"name": "M", "login": LOGIN, "disabledAt": "now"})
    assert response.status_code == 400
    assert "no field 'disabledAt'" in page_text(response)
    assert events() == before


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # it is refused before it is read
def test_another_content_type_is_refused(admin: Visitor, mira: int) -> None:
    response = admin.client.post(f"/admin/administrators/{mira}", json={"name": "M"}, follow_redirects=False)
    assert response.status_code == 415


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/administrators/999", 404), (f"/administrators/{10**30}", 404)])
def test_what_is_not_there_is_said_in_the_layout(admin: Visitor, path: str, status: int) -> None:
    response = admin.get(path)
    assert response.status_code == status
    assert "Go to the overview" in page_text(response)
    assert "Administrators" in page_text(response)
    assert "endpoint" not in page_text(response)


@pytest.mark.either_engine
def test_a_wrong_method_is_405(admin: Visitor) -> None:
    assert admin.get("/account/zone").status_code == 405


@pytest.mark.either_engine
def test_a_script_is_answered_in_json(admin: Visitor, visitor: MakeVisitor, mira: int) -> None:
    accept = {"accept": "application/json"}
    assert visitor().get("/account", headers=accept).json()["message"] == "NO_SESSION"
    assert admin.get("/administrators/999", headers=accept).json()["message"] == "INVALID_ID"
    stale = admin.post(f"/administrators/{mira}/enable", csrf="", headers=accept)
    assert (stale.status_code, stale.json()["message"]) == (412, "PRECONDITION_FAILED")


@pytest.mark.either_engine
def test_the_token_may_come_in_a_header(admin: Visitor, mira: int) -> None:
    headers = {"x-csrf-token": admin.csrf}
    assert admin.post(f"/administrators/{mira}", {"name": "M", "login": LOGIN}, csrf="", headers=headers).status_code == 303


@pytest.mark.either_engine
def test_a_script_in_a_name_does_not_run(admin: Visitor, run: Run) -> None:
    run("admins.create", name="<script>alert(1)</script>", login="x", password=PASSWORD)
    for path in ("", "/administrators", "/administrators/2"):
        assert "<script>alert" not in admin.get(path).text


class Sender:
    """Sends a form straight to the panel, and sees whether the panel reads it."""

    def __init__(self, client: Any) -> None:
        self._panel = client.app
        self.read = 0

    def post(self, path: str, body: bytes, **cookies: str) -> tuple[int, bytes]:
        cookie = "; ".join(f"trellis_{name}={value}" for name, value in cookies.items())
        headers = [
            (b"host", b"panel.example"),
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"cookie", cookie.encode()),
        ]
        scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "query_string": b""}
        scope |= {"client": ("192.0.2.7", 1), "path": f"/admin{path}", "root_path": "", "headers": headers}
        answer: list[Any] = []

        async def receive() -> dict[str, Any]:
            self.read += len(body)
            return {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            answer.append(message)

        asyncio.run(self._panel(scope, receive, send))
        return answer[0]["status"], b"".join(message["body"] for message in answer[1:])


def visitor_token(visitor: Visitor) -> str:
    visitor.get("/sign-in")
    return str(visitor.client.cookies["trellis_visitor"])


_UNKNOWN: Final[tuple[dict[str, str], ...]] = (  # cookies
    {},
    {"visitor": "x" * 43},
    {"visitor": f"{'x' * 43}.{'0' * 64}"},
    {"visitor": "."},
    {"session": "x" * 43},
    {"session": "x" * 43, "visitor": "x", "browser": "x" * 43, "flash": "x.y"},
)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # whoever is not known is so to both
def test_no_body_is_read_of_somebody_who_is_not_known(visitor: MakeVisitor, mira: int) -> None:
    """A session is looked for in one way for all pages that need one."""
    sender = Sender(visitor().client)
    closed = zip((page for page in _WRITES if not page.open), cycle(_UNKNOWN))
    for page, cookies in (*product((page for page in _WRITES if page.open), _UNKNOWN), *closed):
        status, body = sender.post(_path(page), b"a=1&" * 20_000, **cookies)
        assert status in {303, 401, 404, 409}, page  # 404: what is not there without single sign-on
        assert len(body) < 8_000
        assert sender.read == 0, (page, cookies)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # they are refused while they are read
def test_a_visitor_and_an_administrator_send_a_limited_number_of_fields(visitor: MakeVisitor, admin: Visitor, mira: int) -> None:
    somebody = visitor()
    token, session = visitor_token(somebody), str(admin.client.cookies["trellis_session"])
    for cookies in ({"visitor": token}, {"session": session}):
        sender = Sender(somebody.client)
        for fields in (b"&".join(b"a%d=1" % number for number in range(501)), b"a=1&" * 2_001):
            status, body = sender.post("/account/password", fields, **cookies)
            assert status == 400
            assert len(body) < 20_000
        assert sender.post("/sign-in", b"&".join(b"a%d=1" % number for number in range(500)), **cookies)[0] == 409
        assert sender.read > 0


def test_a_token_is_the_services_own_and_stays_when_somebody_else_changes_a_password(
    visitor: MakeVisitor, mira: int, run: Run
) -> None:
    somebody = visitor()
    token = visitor_token(somebody)
    sender, form = Sender(somebody.client), b"login=a&password=b"
    assert sender.post("/sign-in", form, visitor=token[:-1] + ("0" if token[-1] != "0" else "1"))[0] == 409
    assert sender.read == 0
    sender.post("/sign-in", form, visitor=token)
    assert sender.read == len(form)
    run("admins.set_password", mira, password="another good password")
    sender.post("/sign-in", form, visitor=token)
    assert sender.read == 2 * len(form)
    assert somebody.post("/sign-in", {"login": LOGIN, "password": "another good password"}).status_code == 303


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # they are refused before the database is asked
def test_cookies_and_parameters_of_a_visitor_are_not_taken_apart(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor()
    many = somebody.get("/sign-in", headers={"Cookie": "a=1; " * 12_000})
    assert many.status_code == 200
    assert somebody.get("/sign-in?" + "a&" * 501).status_code == 400
    assert somebody.get("/sign-in?" + "a&" * 400 + "next=/admin/keys").status_code == 200
    for path in ("/keys/" + "9" * 5_000, "/keys/" + "9" * 5_000 + "/revoke"):
        assert somebody.get(path).status_code == 303


@pytest.mark.either_engine
def test_a_long_message_fits_into_a_cookie_and_is_shown(
    visitor: MakeVisitor, mira: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = visitor(https=True)
    admin.sign_in()
    for letter in ("x", "庭", "\N{SEEDLING}", '"'):
        forum = run("forums.create", name="Garden")["id"]
        monkeypatch.setattr(delete, "_describe", lambda *_args, letter=letter, **_more: letter * 2_000)
        response = admin.post(f"/forums/{forum}/delete", find_form(admin.get(f"/forums/{forum}/delete"), "/delete").filled())
        assert response.status_code == 303
        (cookie,) = (one for one in response.headers.get_list("set-cookie") if "trellis_flash=" in one)
        assert len(cookie) <= 4096  # browsers drop longer ones
        shown = page_text(admin.get("/forums"))
        assert re.search(rf"{letter}{{100,}}", shown) is not None
        assert "\N{REPLACEMENT CHARACTER}" not in shown


@pytest.mark.either_engine
def test_what_a_browser_without_its_cookies_sends_is_not_said_to_be_kept(visitor: MakeVisitor, mira: int) -> None:
    """As from a tab that the browser has opened again after it was closed: nothing is read before the visitor is known."""
    browser = visitor()
    lost = browser.post("/forums/new", {"name": "Typed", "_action": "save"})
    assert lost.status_code == 401
    assert "What you typed could not be kept: enter it again afterwards." in page_text(lost)
    after = browser.post("/sign-in", find_form(lost, "/sign-in").filled(login=LOGIN, password=PASSWORD))
    assert (after.status_code, after.headers["location"]) == (303, "/admin/forums/new")


def _refuse_full_disk() -> None:
    raise Refused("BUSY", "The database cannot grow: the disk is full.")


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("path", "typed"),
    [
        ("/forums/new", {"name": "Garden", "_action": "save"}),
        ("/forums/{help}/move", {"place": "first", "_action": "save"}),
        ("/forums/{help}/delete", {}),
        ("/events/{last}/undo", {"_action": "undo"}),
        ("/change-sets/{set}/undo", {}),
    ],
)
def test_a_form_that_the_database_refused_is_no_mistake_of_whoever_sent_it(
    admin: Visitor, community: Community, run: Run, events: Events, path: str, typed: dict[str, str]
) -> None:
    run("forums.update", community.help, name="Aid")

    update = {"operation": "forums.update", "id": community.help, "body": {"name": "Help"}}
    run("core.batch", operations=[update])
    path = path.format(help=community.help, last=events()[-1]["seq"], set=events()[-1]["changeSet"])
    filled = find_form(admin.get(path), path).filled(**typed)
    before = len(events())
    with before_writing(_refuse_full_disk):
        refused = admin.post(path, filled)
    assert refused.status_code == 503
    assert "the disk is full" in page_text(refused)
    assert len(events()) == before
    assert admin.post(path, filled).status_code == 303


def test_nor_is_one_for_many_nodes(admin: Visitor, community: Community, events: Events) -> None:
    path, before = "/forums/many/delete", len(events())
    admin.get("/forums")
    filled = find_form(admin.post(path, {"ids": str(community.help)}), path).filled(_action="do")
    with before_writing(_refuse_full_disk):
        refused = admin.post(path, filled)
    assert (refused.status_code, "the disk is full" in page_text(refused), len(events())) == (503, True, before)
