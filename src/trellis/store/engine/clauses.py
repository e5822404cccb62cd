"""SQL expressions that the two engines spell differently."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement

MemberType = Literal["text", "integer"]

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


class _Spelled(ColumnElement[Any]):
    """An expression with a template for each engine, in which `{name}` stands for one of its `parts`: an expression, or a text."""

    sqlite: ClassVar[str]
    postgresql: ClassVar[str]
    type = _UNTYPED

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.inherit_cache = False  # SQLAlchemy asks each class for itself, and warns if it does not say

    def __init__(self, **parts: ColumnElement[Any] | str) -> None:
        self.parts = parts


@compiles(_Spelled)
def _spell(element: _Spelled, compiler: Any, **kw: Any) -> str:
    parts = {name: part if isinstance(part, str) else compiler.process(part, **kw) for name, part in element.parts.items()}
    template = element.sqlite if compiler.dialect.name == "sqlite" else element.postgresql
    return template.format_map(parts)


class IdIn(_Spelled):
    """Whether a number is in a list given as one parameter (see Transaction.id_list)."""

    sqlite = "{column} IN (SELECT value FROM json_each({given}))"
    postgresql = "{column} = ANY(CAST({given} AS BIGINT[]))"

    def __init__(self, column: ColumnElement[Any], parameter: str, **more: ColumnElement[Any]) -> None:
        super().__init__(column=column, given=sa.bindparam(parameter, type_=_UNTYPED), **more)


class TextIn(IdIn):
    """Whether a text is in a list given as one parameter."""

    postgresql = "{column} = ANY(CAST({given} AS TEXT[]))"


class ListedId(_Spelled):
    """Whether a number is in a long list. PostgreSQL can look each row up in a hash table of the list."""

    sqlite = IdIn.sqlite
    postgresql = "{column} IN (SELECT unnest(CAST({given} AS BIGINT[])))"

    def __init__(self, column: ColumnElement[Any], parameter: str, given: Any) -> None:
        super().__init__(column=column, given=sa.bindparam(parameter, given, type_=_UNTYPED))


class NodeIdIn(IdIn):
    """Whether a node is of `:kind` and in a list of ids. The ids are looked up one by one; no index is scanned for the whole kind.

    Use it instead of a condition on the kind, not beside one. With such a condition PostgreSQL, which has no statistics of kinds,
    expects so few nodes of each kind that it reads all nodes of the kind to find twenty ids among them.
    """

    # The casts give the values the affinity of the columns; without it SQLite does not use the index on both.
    sqlite = "(kind, {column}) IN (SELECT CAST({kind} AS TEXT), CAST(value AS INTEGER) FROM json_each({given}))"
    postgresql = "(kind, {column}) IN (SELECT CAST({kind} AS TEXT), unnest(CAST({given} AS BIGINT[])))"

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        super().__init__(column, parameter, kind=sa.bindparam("kind", type_=_UNTYPED))


class Contains(_Spelled):
    """Whether a text contains another, byte for byte: the value of a parameter with this name, or an element."""

    sqlite = "instr({column}, {given}) > 0"
    postgresql = "strpos({column}, {given}) > 0"

    def __init__(self, column: ColumnElement[Any], given: str | ColumnElement[str]) -> None:
        super().__init__(column=column, given=sa.bindparam(given, type_=sa.Text()) if isinstance(given, str) else given)


class MentionsNumber(_Spelled):
    """Whether a JSON document contains a number anywhere."""

    # Looking for the digits first saves parsing the JSON of most rows.
    sqlite = (
        "(instr({column}, CAST({given} AS TEXT)) > 0 "
        "AND EXISTS (SELECT 1 FROM json_tree({column}) AS part WHERE part.type = 'integer' AND part.atom = {given}))"
    )
    postgresql = "jsonb_path_exists({column}, '$.** ? (@ == $number)', jsonb_build_object('number', {given}))"

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        super().__init__(column=column, given=sa.bindparam(parameter, type_=sa.BigInteger()))


class JsonMember(_Spelled):
    """A member of a JSON object, as text."""

    # Invalid JSON, which `trellis check` reports, must not make lists or indexes fail. nodes_by_type indexes this very expression.
    sqlite = "CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{name}') END"
    postgresql = "({column} ->> '{name}')"
    type = sa.Text()

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        super().__init__(column=column, name=_plain(name))


class IsJsonObject(_Spelled):
    """Whether a value is a JSON object, or null."""

    sqlite = "CASE WHEN json_valid({column}) THEN json_type({column}) IN ('object', 'null') ELSE FALSE END"
    postgresql = "(jsonb_typeof({column}) IN ('object', 'null'))"

    def __init__(self, column: ColumnElement[Any]) -> None:
        super().__init__(column=column)


class HasJsonMembers(_Spelled):
    """Whether a value is a JSON object with these members, given with their types."""

    sqlite = "CASE WHEN json_valid({column}) THEN (SELECT {on_sqlite} FROM (SELECT {column} AS value) AS one) ELSE FALSE END"
    postgresql = "jsonb_path_exists({column}, 'strict $ ? ({on_postgresql})')"

    def __init__(self, column: ColumnElement[Any], members: Mapping[str, MemberType]) -> None:
        on_sqlite, on_postgresql = _test_members(members)
        super().__init__(column=column, on_sqlite=on_sqlite, on_postgresql=on_postgresql)


class IsJsonList(_Spelled):
    """Whether a value is a JSON list of texts or, given `members`, of objects with these members."""

    # PostgreSQL's lax mode would look into lists within the list. In strict mode, a test of a member that is not there is unknown.
    sqlite = (
        "CASE WHEN json_valid({column}) THEN json_type({column}) = 'array' "
        "AND NOT EXISTS (SELECT 1 FROM json_each({column}) AS one WHERE NOT {on_sqlite}) ELSE FALSE END"
    )
    postgresql = (
        "(jsonb_typeof({column}) = 'array' AND NOT jsonb_path_exists({column}, "
        "'strict $[*] ? (!({on_postgresql}) || ({on_postgresql}) is unknown)', '{{}}', TRUE))"
    )

    def __init__(self, column: ColumnElement[Any], members: Mapping[str, MemberType] | None = None) -> None:
        tests = ("one.type = 'text'", '@.type() == "string"')
        if members is not None:
            on_sqlite, on_postgresql = _test_members(members)
            tests = (f"CASE one.type WHEN 'object' THEN {on_sqlite} ELSE FALSE END", on_postgresql)
        super().__init__(column=column, on_sqlite=tests[0], on_postgresql=tests[1])


def _test_members(members: Mapping[str, MemberType]) -> tuple[str, str]:
    """Build the tests that `one.value` is an object with these members, for SQLite and as a path for PostgreSQL."""
    of = {"text": "string", "integer": "number"}
    on_sqlite = (f"json_type(one.value, '$.{_plain(name)}') IS '{type_}'" for name, type_ in members.items())
    on_postgresql = (f'@."{_plain(name)}".type() == "{of[type_]}"' for name, type_ in members.items())
    return " AND ".join(on_sqlite), " && ".join(['@.type() == "object"', *on_postgresql])


class ListedAmong(_Spelled):
    """Whether a JSON list of names is not empty and contains none but the given names."""

    sqlite = "({column} <> '[]' AND NOT EXISTS (SELECT 1 FROM json_each({column}) AS one WHERE one.value NOT IN ({texts})))"
    postgresql = "({column} <> '[]' AND {column} <@ '[{members}]')"

    def __init__(self, column: ColumnElement[Any], names: Iterable[str]) -> None:
        plain = sorted(_plain(name) for name in names)
        texts, members = (", ".join(f"{quote}{name}{quote}" for name in plain) for quote in "'\"")
        super().__init__(column=column, texts=texts, members=members)


def _plain(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"not the name of a field: {name!r}")
    return name


class Rare(_Spelled):
    """Whether a column has a value that few rows have, so that an index that begins with more than the kind is to be used for it.

    SQLite has no statistics, and prefers other indexes. Those of PostgreSQL may say that all rows have the same value, as if nearly
    all nodes were below one parent; it expects few of a range of which it does not know the ends.
    """

    sqlite = "unlikely({column} = {value})"
    postgresql = "{column} BETWEEN {value} AND {value}"

    def __init__(self, column: ColumnElement[Any], value: ColumnElement[Any]) -> None:
        super().__init__(column=column, value=value)


class WithoutIndex(_Spelled):
    """A column for which SQLite must not use an index. Without statistics, it would use any index that exists."""

    sqlite = "+{column}"
    postgresql = "{column}"

    def __init__(self, column: ColumnElement[Any], **more: str) -> None:
        super().__init__(column=column, **more)
        self.type = column.type


class WithoutIndexOrder(WithoutIndex):
    """A column to sort by without scanning an index in its order: if few rows match, sorting them costs less."""

    postgresql = "({column} {unchanged})"

    def __init__(self, column: ColumnElement[Any]) -> None:
        super().__init__(column, unchanged="|| ''" if isinstance(column.type, sa.Text) else "+ 0")


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
