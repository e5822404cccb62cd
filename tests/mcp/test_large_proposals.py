"""What an agent can propose it can also read."""

import json

from tests.agent_client import AgentClient
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run


def test_a_proposal_that_tools_could_not_show_is_refused_when_it_is_made(
    agent: AgentClient, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    bounds = {"forums.create": {"level": "propose"}}
    mine = key(["forums.list", "groups.list", "forums.create", "structure.apply"], bounds=bounds)

    def describe(number: int) -> dict[str, str]:
        forums = [{"externalId": f"f{n}", "name": f"F{n}", "description": f"<p>{'x' * 90_000}</p>"} for n in range(number)]
        return {"document": json.dumps({"format": "trellis/1", "name": "site", "forums": forums})}

    proposal = agent.value("structure.apply", describe(33), key=mine)
    assert agent.value("proposals.get", {"id": proposal["id"]}, key=mine)["input"] == proposal["input"]
    with database.unchanged():
        problem = agent.problem("structure.apply", describe(66), key=mine)
    assert (problem["status"], problem["errorMessage"], problem["limit"]) == (409, "PROPOSAL_TOO_LARGE", 7 * 2**20)
    run("proposals.approve", proposal["id"])
    assert run("forums.list")["totalResults"] == 33
