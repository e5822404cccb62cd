"""A community that has something of everything, and how every page of its panel is found."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import unescape
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from tests.admin.conftest import Visitor
from tests.admin.html_forms import HtmlForm, read_forms
from tests.fixture_types import MakeKey, Run
from trellis.admin.page import Page
from trellis.admin.submitted import CSRF
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.kinds import KINDS

T = TypeVar("T")

UNLINKED: Final = (  # that no link leads to
    *(f"/admin/search?text={text}" for text in ("new", "n", "ω", "Κλειδί", "revoke+", "trl_abcdefgh_secret")),
    *(f"/admin/{name}?search=ω" for name in ("forums", "groups", "keys", "blogs")),
    *(f"/admin/{name}?from=ω" for name in ("requests", "events", "deliveries")),
    "/admin/requests?status=4xx",
    "/admin/events?type=forum.created&resourceId=999",
    "/admin/forums/999",
    "/admin/nowhere",
    "/admin/confirm-password",
    "/admin/keys/1?operation=forums.delete&when=now",
    "/admin/keys/1?operation=forums.list&when=now",
)

_LINK: Final = re.compile(r'<a\b[^>]*? href="([^"]*)"')
_MOST: Final = 400  # pages
KIND: Final = re.compile(rf"^/({'|'.join(kind.name for kind in KINDS)})(?=/|$)")


def group_alike(pages: Iterable[Page], of: Callable[[Page], object] = lambda _: None) -> list[list[Page]]:
    """Put the pages together that all kinds of nodes have: one function makes them. Those for which `of` differs are apart."""
    alike: dict[tuple[str, str, object], list[Page]] = {}
    for page in pages:
        alike.setdefault((page.method, KIND.sub("/", page.path), of(page)), []).append(page)
    return list(alike.values())


def spread(pages: Iterable[Page], cases: Sequence[T]) -> Iterator[tuple[Page, T]]:
    """Yield every page with some of the cases: all of them for one that there is once; among kinds they are divided."""
    for those in group_alike(pages):
        yield from ((those[at % len(those)], cases[at % len(cases)]) for at in range(max(len(those), len(cases))))


def shape_of(address: str) -> str:
    """Return what pages of one kind have in common: their address without numbers and without the values of its query.

    Those to which no link leads are each of a kind of their own.
    """
    if address in UNLINKED:
        return address
    parts = urlsplit(address)
    return re.sub(r"\d+", "N", parts.path) + "?" + re.sub(r"=[^&]*", "", parts.query)


def see_everything(admin: Visitor) -> Iterator[tuple[str, Any]]:
    """Yield all pages that links lead to, one of each kind of address, and then what is answered to their forms.

    The forms are sent as they stand, and before that with something in each field that does not belong there.
    """
    forms: dict[str, tuple[str, HtmlForm]] = {}
    for address, response in _visit(admin, "/admin", *UNLINKED):
        yield address, response
        for drawn in read_forms(response):
            forms.setdefault(shape_of(drawn.action or address), (address, drawn))
    sent = [pair for shape, pair in forms.items() if any(name == CSRF for name, _ in pair[1].pairs) and "sign-out" not in shape]
    for spoil in ("\N{GREEK SMALL LETTER OMEGA}", ""):
        yield from _send(admin, sent, spoil)


def _visit(admin: Visitor, *first: str) -> Iterator[tuple[str, Any]]:
    waiting, seen = list(first), set[str]()
    while waiting and len(seen) < _MOST:
        address = waiting.pop(0)
        shape = shape_of(address)
        if shape in seen:
            continue
        seen.add(shape)
        response: Any = admin.client.get(address, follow_redirects=True)
        if _is_page(response):
            yield address, response
            links = [unescape(link) for link in _LINK.findall(response.text)]
            waiting += [link for link in links if link.startswith("/admin") and "sign-out" not in link]


def _is_page(response: Any) -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/html")


def _send(admin: Visitor, forms: list[tuple[str, HtmlForm]], spoil: str) -> Iterator[tuple[str, Any]]:
    for page, drawn in forms:
        values = drawn.filled(**{name: spoil for name, _ in drawn.pairs if not name.startswith("_")} if spoil else {})
        response = admin.client.post(drawn.action or page, data={**values, "csrf": admin.csrf}, follow_redirects=True)
        if _is_page(response):
            yield f"{drawn.action or page} sent", response


def fill(gate: Gate, run: Run, key: MakeKey) -> None:
    """Make at least one of everything that there is a page for, with names in Greek."""
    for number, name in {2: "Ξένοι", 3: "Μέλη", 4: "Διαχειριστές"}.items():
        run("groups.update", number, name=name)
    group = run("groups.create", name="Ομάδα")["id"]
    top = run("forums.create", name="Αγορά", description="<p>Γεια</p>", permissions={"view": "*", "reply": [group]})["id"]
    below = run(
        "forums.create", name="Κάτω", parentId=top, type="redirect", redirectUrl="https://example.com/", password="μυστικό μου"
    )["id"]
    run("calendars.create", name="Ημέρες", color="#3B82F6")
    run("categories.create", name="Αρχεία")
    run("forums.update", top, name="Νέα")
    run("forums.copy", top, name="Αντίγραφο", withChildren=True)
    run("forums.delete", below)
    key(["forums.list", "forums.create"], name="Κλειδί", note="Σημείωση")
    run("webhooks.create", url="https://hooks.example/", description="Άγκιστρο", events=["forum.created"])
    run("keys.pause", 1, reason="Διακοπή")
    key("forums.list", name="Παλιό", expires="1h")
    run("admins.create", name="Άννα", login="άννα", password="επτά φανάρια πάνω από λιμάνι")
    run("admins.disable", 2)
    document = {"format": "trellis/1", "name": "δομή", "forums": [{"externalId": "a", "name": "Διαχείριση"}]}
    run("structure.apply", document=document)
    _propose(gate, run, key)


def _propose(gate: Gate, run: Run, key: MakeKey) -> None:
    names = ("forums.create", "forums.delete", "groups.delete")
    text = key(names, name="Πράκτορας", bounds={name: {"level": "propose"} for name in names})
    actor = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    raws: tuple[dict[str, Any], ...] = ({"name": "Πρόταση"}, {"deleteChildrenOrMove": -1}, {})
    calls = [Call(name, actor, raw, target) for name, target, raw in zip(names, (None, 1, 5), raws, strict=True)]
    proposals = [gate.run(call).value["id"] for call in calls]
    run("proposals.reject", proposals[0], reason="Όχι")
