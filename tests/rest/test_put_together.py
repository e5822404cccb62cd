"""Clients that put the same external id, or send the same batch, at the same time."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.api_client import ApiClient
from tests.conftest import NewSettings, runner
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.errors import Refused

PATH = "/forums/forums/external/news"


def test_the_same_external_id_put_at_once_makes_one_record(api: ApiClient) -> None:
    answers = api.together(*(api.sending("PUT", PATH, json={"name": f"News {number}"}) for number in range(12)))
    assert sorted(answer.status_code for answer in answers) == [200] * 11 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert api.get("/forums/forums").json()["totalResults"] == 1


def test_two_processes_put_and_create_with_the_same_external_ids(new_settings: NewSettings) -> None:
    """Two applications over one database, as two processes are: a unique index is never what refuses."""
    settings = new_settings()
    gates = [compose(settings), compose(settings)]
    names = [f"n{number}" for number in range(8)]

    def work(number: int) -> list[str]:
        found = []
        for name in names:
            raw: dict[str, Any] = {"name": name, "externalId": name}
            operation = "forums.put_external" if number % 2 else "forums.create"
            try:
                found.append(str(gates[number // 2].run(Call(operation, TERMINAL, raw)).value["id"]))
            except Refused as refused:
                found.append(refused.message)
        return found

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    made = runner(gates[0])("forums.list", perPage=100)["results"]
    for gate in gates:
        gate.store.close()
    assert sorted(record["externalId"] for record in made) == names
    assert {one for some in found for one in some} <= {str(record["id"]) for record in made} | {"EXTERNAL_ID_TAKEN"}
    assert "EXTERNAL_ID_TAKEN" not in found[1] + found[3], "a put is never refused"


def test_a_batch_in_flight_is_not_run_twice(api: ApiClient) -> None:
    many = [{"operation": "forums.create", "body": {"name": f"N{number}"}} for number in range(50)]
    headers = {"Idempotency-Key": "batch"}
    answers = api.together(*(api.sending("POST", "/core/batch", json={"operations": many}, headers=headers) for _ in range(6)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {json.loads(answer.text)["errorMessage"] for answer in answers if answer.status_code == 409} <= {
        "IDEMPOTENCY_KEY_IN_USE"
    }
    assert api.get("/forums/forums").json()["totalResults"] == 50
