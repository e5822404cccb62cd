"""What an agent can propose it can also read."""

import json

import pytest

from tests.agent_client import AgentClient
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from trellis.core.proposals import creation
from trellis.mcp import results


def test_a_proposal_that_tools_could_not_show_is_refused_when_it_is_made(
    agent: AgentClient, key: MakeKey, run: Run, database: DatabaseState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both bounds are a sixteenth here."""
    for module, bound in ((creation, "LARGEST"), (results, "MOST_BYTES")):
        monkeypatch.setattr(module, bound, getattr(module, bound) // 16)
    bounds = {"forums.create": {"level": "propose"}}
    mine = key(["forums.list", "groups.list", "forums.create", "structure.apply"], bounds=bounds)

    def describe(number: int) -> dict[str, str]:
        forums = [{"externalId": f"f{n}", "name": f"F{n}", "description": f"<p>{'x' * 5_600}</p>"} for n in range(number)]
        return {"document": json.dumps({"format": "trellis/1", "name": "site", "forums": forums})}

    proposal = agent.value("structure.apply", describe(33), key=mine)
    assert agent.value("proposals.get", {"id": proposal["id"]}, key=mine)["input"] == proposal["input"]
    with database.unchanged():
        problem = agent.problem("structure.apply", describe(66), key=mine)
    assert (problem["status"], problem["errorMessage"], problem["limit"]) == (409, "PROPOSAL_TOO_LARGE", 7 * 2**16)
    run("proposals.approve", proposal["id"])
    assert run("forums.list")["totalResults"] == 33
