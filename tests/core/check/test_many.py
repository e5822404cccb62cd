"""A check reads everything once, however many nodes there are, and no time limit of a single read ends it."""

from dataclasses import replace
from typing import Final

import pytest
import sqlalchemy as sa

from tests.conftest import NewSettings, runner
from trellis.compose import compose
from trellis.store.tables import nodes

MANY: Final = 20_000


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_of_many_nodes_on_postgresql_it_comes_to_an_end(new_settings: NewSettings) -> None:
    settings = replace(new_settings(), database_read_timeout=1)
    gate = compose(settings)
    run = runner(gate)
    one = run("forums.create", name="One")["id"]
    numbers = sa.func.generate_series(one + 1, one + MANY).table_valued("number").render_derived()
    columns = [column for column in nodes.columns if column.name != "id"]
    many = nodes.join(numbers, sa.true())
    copied = sa.select(numbers.c.number, *columns).select_from(many).where(nodes.c.kind == "forums", nodes.c.id == one)
    copies = sa.insert(nodes).from_select(["id", *(column.name for column in columns)], copied)
    gate.store.write(lambda tx: tx.connection.execute(copies)).result(60)
    found = run("check.list", limit=1)
    assert found["checked"]["forums"] == MANY + 1
    assert found["count"] > 0, "rows that nobody has given a place among their siblings"
    gate.store.close()
