"""A community that has something of everything, and how every page of its panel is found."""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call

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


def shape_of(address: str) -> str:
    """Return what pages of one kind have in common: their address without numbers and without the values of its query."""
    parts = urlsplit(address)
    return re.sub(r"\d+", "N", parts.path) + "?" + re.sub(r"=[^&]*", "", parts.query)


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
    run("webhooks.create", url="https://example.com/", description="Άγκιστρο", events=["forum.created"])
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
