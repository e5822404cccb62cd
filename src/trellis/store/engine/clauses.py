"""SQL expressions that the two engines spell differently."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement

# For a Boolean type, SQLAlchemy appends `= 1` on SQLite, and no index can be used for that.
_UNTYPED: Any = sa.types.NullType()


class InOrder(sa.Join):
    """A join of each row of `left` with each of `right`, which SQLite reads in this order.

    Otherwise SQLite, which has no statistics, would guess the order. Given a few rows and the index entries that they lead to, it
    would read all index entries first and look for the rows in each.
    See https://sqlite.org/optoverview.html#manual_control_of_query_plans_using_cross_join.
    """

    inherit_cache = True

    def __init__(self, left: sa.FromClause, right: sa.FromClause) -> None:
        super().__init__(left, right, sa.true())


@compiles(InOrder)
def _in_order(element: InOrder, compiler: Any, **kw: Any) -> str:
    return " CROSS JOIN ".join(compiler.process(side, **kw) for side in (element.left, element.right))


class IdIn(ColumnElement[bool]):
    """Whether a number is in a list given as one parameter (see Transaction.id_list)."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.given = sa.bindparam(parameter, type_=sa.types.NullType())


@compiles(IdIn, "sqlite")
def _id_in_sqlite(element: IdIn, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN (SELECT value FROM json_each({compiler.process(element.given, **kw)}))"  # noqa: S608  # SQLAlchemy's own text


@compiles(IdIn, "postgresql")
def _id_in_postgresql(element: IdIn, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY(CAST({compiler.process(element.given, **kw)} AS BIGINT[]))"


class ListedId(IdIn):
    """Whether a number is in a long list. PostgreSQL can look each row up in a hash table of the list."""

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any], parameter: str, given: Any) -> None:
        super().__init__(column, parameter)
        self.given = sa.bindparam(parameter, given, type_=_UNTYPED)


@compiles(ListedId, "postgresql")
def _listed_id_postgresql(element: ListedId, compiler: Any, **kw: Any) -> str:
    given = compiler.process(element.given, **kw)
    return f"{compiler.process(element.column, **kw)} IN (SELECT unnest(CAST({given} AS BIGINT[])))"  # SQLAlchemy's own text


class NodeIdIn(IdIn):
    """Whether a node is of `:kind` and in a list of ids. The ids are looked up one by one; no index is scanned for the whole kind.

    Use it instead of a condition on the kind, not beside one. With such a condition PostgreSQL, which has no statistics of kinds,
    expects so few nodes of each kind that it reads all nodes of the kind to find twenty ids among them.
    """

    inherit_cache = False

    def spell(self, compiler: Any, ids: str, **kw: Any) -> str:
        """Return the condition as SQL. `ids` is the rest of a SELECT that yields the ids."""
        kind = compiler.process(sa.bindparam("kind", type_=_UNTYPED), **kw)
        # The casts give the values the affinity of the columns; without it SQLite does not use the index on both.
        return f"(kind, {compiler.process(self.column, **kw)}) IN (SELECT CAST({kind} AS TEXT), {ids})"


@compiles(NodeIdIn, "sqlite")
def _node_id_in_sqlite(element: NodeIdIn, compiler: Any, **kw: Any) -> str:
    given = compiler.process(element.given, **kw)
    return element.spell(compiler, f"CAST(value AS INTEGER) FROM json_each({given})", **kw)


@compiles(NodeIdIn, "postgresql")
def _node_id_in_postgresql(element: NodeIdIn, compiler: Any, **kw: Any) -> str:
    given = compiler.process(element.given, **kw)
    return element.spell(compiler, f"unnest(CAST({given} AS BIGINT[]))", **kw)


class TextIn(IdIn):
    """Whether a text is in a list given as one parameter."""

    inherit_cache = False


@compiles(TextIn, "postgresql")
def _text_in_postgresql(element: TextIn, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY(CAST({compiler.process(element.given, **kw)} AS TEXT[]))"


class Contains(ColumnElement[bool]):
    """Whether a text contains another, byte for byte: the value of a parameter with this name, or an element."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], given: str | ColumnElement[str]) -> None:
        self.column = column
        self.given = sa.bindparam(given, type_=sa.Text()) if isinstance(given, str) else given


@compiles(Contains, "sqlite")
def _contains_sqlite(element: Contains, compiler: Any, **kw: Any) -> str:
    return f"instr({compiler.process(element.column, **kw)}, {compiler.process(element.given, **kw)}) > 0"


@compiles(Contains, "postgresql")
def _contains_postgresql(element: Contains, compiler: Any, **kw: Any) -> str:
    return f"strpos({compiler.process(element.column, **kw)}, {compiler.process(element.given, **kw)}) > 0"


class MentionsNumber(ColumnElement[bool]):
    """Whether a JSON document contains a number anywhere."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.given = sa.bindparam(parameter, type_=sa.BigInteger())


@compiles(MentionsNumber, "sqlite")
def _mentions_number_sqlite(element: MentionsNumber, compiler: Any, **kw: Any) -> str:
    column, given = compiler.process(element.column, **kw), compiler.process(element.given, **kw)
    # Looking for the digits first saves parsing the JSON of most rows.
    found = f"EXISTS (SELECT 1 FROM json_tree({column}) AS part WHERE part.type = 'integer' AND part.atom = {given})"  # noqa: S608  # SQLAlchemy's own text
    return f"(instr({column}, CAST({given} AS TEXT)) > 0 AND {found})"


@compiles(MentionsNumber, "postgresql")
def _mentions_number_postgresql(element: MentionsNumber, compiler: Any, **kw: Any) -> str:
    column, given = compiler.process(element.column, **kw), compiler.process(element.given, **kw)
    return f"jsonb_path_exists({column}, '$.** ? (@ == $number)', jsonb_build_object('number', {given}))"


class JsonMember(ColumnElement[str]):
    """A member of a JSON object, as text."""

    inherit_cache = False
    type = sa.Text()

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name


@compiles(JsonMember, "sqlite")
def _json_member_sqlite(element: JsonMember, compiler: Any, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    # Invalid JSON, which `trellis check` reports, must not make lists or indexes fail. nodes_by_type indexes this very expression.
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{_plain(element.name)}') END"


@compiles(JsonMember, "postgresql")
def _json_member_postgresql(element: JsonMember, compiler: Any, **kw: Any) -> str:
    return f"({compiler.process(element.column, **kw)} ->> '{_plain(element.name)}')"


class ListedAmong(ColumnElement[bool]):
    """Whether a JSON list of names is not empty and contains none but the given names."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], names: Iterable[str]) -> None:
        self.column = column
        self.names = sorted(_plain(name) for name in names)


@compiles(ListedAmong, "sqlite")
def _listed_among_sqlite(element: ListedAmong, compiler: Any, **kw: Any) -> str:
    column, names = compiler.process(element.column, **kw), ", ".join(f"'{name}'" for name in element.names)
    return f"({column} <> '[]' AND NOT EXISTS (SELECT 1 FROM json_each({column}) AS one WHERE one.value NOT IN ({names})))"  # noqa: S608  # names of fields


@compiles(ListedAmong, "postgresql")
def _listed_among_postgresql(element: ListedAmong, compiler: Any, **kw: Any) -> str:
    column, names = compiler.process(element.column, **kw), ", ".join(f'"{name}"' for name in element.names)
    return f"({column} <> '[]' AND {column} <@ '[{names}]')"


def _plain(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"not the name of a field: {name!r}")
    return name


class Rare(ColumnElement[bool]):
    """A condition that few rows satisfy: SQLite, which has no statistics, prefers an index for it to other indexes."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, condition: ColumnElement[bool]) -> None:
        self.condition = condition


@compiles(Rare, "sqlite")
def _rare_sqlite(element: Rare, compiler: Any, **kw: Any) -> str:
    return f"unlikely({compiler.process(element.condition, **kw)})"


@compiles(Rare, "postgresql")
def _rare_postgresql(element: Rare, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.condition, **kw))


class WithoutIndex(ColumnElement[Any]):
    """A column for which SQLite must not use an index. Without statistics, it would use any index that exists."""

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(WithoutIndex, "sqlite")
def _without_index_sqlite(element: WithoutIndex, compiler: Any, **kw: Any) -> str:
    return f"+{compiler.process(element.column, **kw)}"


@compiles(WithoutIndex, "postgresql")
def _without_index_postgresql(element: WithoutIndex, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.column, **kw))


class WithoutIndexOrder(WithoutIndex):
    """A column to sort by without scanning an index in its order: if few rows match, sorting them costs less."""

    inherit_cache = False


@compiles(WithoutIndexOrder, "postgresql")
def _without_index_order_postgresql(element: WithoutIndexOrder, compiler: Any, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    return f"({column} || '')" if isinstance(element.type, sa.Text) else f"({column} + 0)"


class OfRows(sa.ClauseElement):
    """A statement as text about rows given as one parameter: `:rows`, a JSON list of lists.

    In the text, `{rows}` is a table with the alias `given`. `columns` maps its columns, in the order of the lists, to PostgreSQL's
    names of their types. `{join}` joins it to another table; SQLite then reads the given rows first: see `InOrder`.
    """

    inherit_cache = False

    def __init__(self, sql: str, columns: Mapping[str, str]) -> None:
        self.sql = sql
        self.columns = columns


@compiles(OfRows)
def _of_rows(element: OfRows, compiler: Any, **kw: Any) -> str:
    if compiler.dialect.name == "sqlite":
        columns = [f"json_extract(value, '$[{n}]') AS {name}" for n, name in enumerate(element.columns)]
        function, join = "json_each(:rows)", "CROSS JOIN"
    else:
        columns = [f"CAST(value ->> {n} AS {kind}) AS {name}" for n, (name, kind) in enumerate(element.columns.items())]
        function, join = "jsonb_array_elements(CAST(:rows AS JSONB))", "JOIN"
    rows = f"(SELECT {', '.join(columns)} FROM {function}) AS given"  # noqa: S608  # our own text
    return str(compiler.process(sa.text(element.sql.format(rows=rows, join=join)), **kw))
