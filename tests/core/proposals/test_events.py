"""What others learn of proposals: webhooks, the feed, and housekeeping that closes those that have expired."""

from tests.core.proposals.conftest import Act
from tests.fixture_types import Clock, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.webhooks.outbox import fill_outbox

URL = "https://hooks.example/"
TYPES = ("proposal.created", "proposal.approved", "proposal.rejected", "proposal.withdrawn", "proposal.expired")


def test_webhooks_can_subscribe_to_all_that_becomes_of_proposals(gate: Gate, agent: Actor, act: Act, run: Run) -> None:
    assert set(TYPES) <= set(gate.environment.event_types)
    run("webhooks.create", url=URL, events=["proposal.approved", "proposal.rejected"])
    run("webhooks.create", url=URL, events=["proposal.*"])
    run("webhooks.create", url=URL, events=["forum.*"])
    for name in ("One", "Two", "Three"):
        act(agent, "forums.create", name=name)
    run("proposals.approve", 1)
    run("proposals.reject", 2, reason="No.")
    run("proposals.withdraw", 3)
    gate.store.write(lambda tx: fill_outbox(tx, frozenset({"forums", "proposals"}), gate.now())).result()
    told = sorted((one["webhookId"], one["type"]) for one in run("deliveries.list", limit=100)["results"])
    assert told == [
        (1, "proposal.approved"),
        (1, "proposal.rejected"),
        (2, "proposal.approved"),
        (2, "proposal.created"),
        (2, "proposal.created"),
        (2, "proposal.created"),
        (2, "proposal.rejected"),
        (2, "proposal.withdrawn"),
        (3, "forum.created"),
    ]


def test_the_feed_finds_them_by_type(agent: Actor, act: Act, run: Run, clock: Clock) -> None:
    act(agent, "forums.create", name="News")
    run("proposals.approve", 1)
    assert [one["type"] for one in run("events.list", type="proposal.created,proposal.approved")["results"]] == list(TYPES[:2])
    (made,) = run("events.list", type="forum.created")["results"]
    assert (made["proposal"], made["approvedBy"]) == (1, {"type": "terminal", "id": None, "name": "terminal"})
    assert run("events.get", made["seq"])["approvedBy"]["type"] == "terminal"


def test_what_was_approved_can_be_undone_like_any_other_change(agent: Actor, act: Act, run: Run) -> None:
    news = run("forums.create", name="News")["id"]
    act(agent, "forums.update", news, name="Bulletin")
    run("proposals.approve", 1)
    (changed,) = run("events.list", type="forum.updated")["results"]
    run("events.restore", changed["seq"])
    assert run("forums.get", news)["name"] == "News"
