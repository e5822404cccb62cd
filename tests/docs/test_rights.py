"""An account that may only read and write rows, with the rights that docs/security.md prints, is enough to serve."""

from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from tests.api_client import ApiClient
from tests.api_fixtures import listen
from tests.conftest import runner
from tests.docs.test_pages import between
from trellis.asgi import Application
from trellis.compose import compose
from trellis.settings import Settings

PAGE: Final = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_an_account_that_may_only_read_and_write_rows_serves(settings: Settings) -> None:
    rights = between(PAGE, "rights").removeprefix("```sql\n").removesuffix("```\n")
    address = urlsplit(settings.database_url)
    account = f"service_{address.path[1:]}"
    query = f"{address.query}&user={account}" if address.query else f"user={account}"
    with psycopg.connect(settings.database_url, autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {account} LOGIN")
        owner.execute(rights.replace("trellis_service", account))
    try:
        limited = replace(settings, database_url=urlunsplit(address._replace(query=query)))
        with psycopg.connect(limited.database_url) as connection, pytest.raises(InsufficientPrivilege):
            connection.execute("DROP TABLE nodes")
        gate = listen(compose(limited))
        run = runner(gate)
        api = ApiClient(Application(limited, gate), run("keys.create", name="Plugin", grants=["*"])["key"])
        made = [api.post("forums/forums", {"name": f"Forum {number}"}).json()["id"] for number in range(70)]
        assert api.get("forums/forums", params={"search": "forum 6"}).json()["totalResults"] == 11
        assert api.delete(f"forums/forums/{made[0]}").status_code == 200
        assert (
            api.post(f"core/events/{run('events.list', order='newest', limit=1)['results'][0]['seq']}/restore").status_code == 200
        )
        assert run("check.list")["problems"] == []
        api.close()
        gate.store.close()
    finally:
        with psycopg.connect(settings.database_url, autocommit=True) as owner:
            owner.execute(f"DROP OWNED BY {account}")
            owner.execute(f"DROP ROLE {account}")
