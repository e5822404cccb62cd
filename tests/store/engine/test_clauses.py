"""SQL that the two engines spell differently: what is put into a statement as text is a plain name."""

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from trellis.store.engine.clauses import JsonMember, ListedAmong
from trellis.store.tables import nodes


@pytest.mark.parametrize("dialect", [sqlite.dialect, postgresql.dialect], ids=["sqlite", "postgresql"])
@pytest.mark.parametrize("name", ["a'b", "a b", "a.b", "", "größe", "a--", "1a"])
def test_a_member_is_asked_for_by_a_plain_name_only(dialect: type[sa.Dialect], name: str) -> None:
    assert "'" in str(JsonMember(nodes.c.fields, "type").compile(dialect=dialect()))
    with pytest.raises(ValueError, match="not the name of a field"):
        JsonMember(nodes.c.fields, name).compile(dialect=dialect())
    with pytest.raises(ValueError, match="not the name of a field"):
        ListedAmong(nodes.c.fields, (name,)).compile(dialect=dialect())
