"""SQL expressions that the two engines spell differently."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.elements import ColumnElement

# A Boolean would be compared with 1 on SQLite, and so pass every index by.
_UNTYPED: Any = sa.types.NullType()


class Among(ColumnElement[bool]):
    """Whether a number is in a list given as one parameter (see Transaction.ids)."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.given = sa.bindparam(parameter, type_=sa.types.NullType())


@compiles(Among, "sqlite")
def _among_sqlite(element: Among, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} IN (SELECT value FROM json_each({compiler.process(element.given, **kw)}))"  # noqa: S608  # SQLAlchemy's own text


@compiles(Among, "postgresql")
def _among_postgresql(element: Among, compiler: Any, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY(CAST({compiler.process(element.given, **kw)} AS BIGINT[]))"


class AmongOf(Among):
    """Whether a node of `:kind` is in a list of ids. SQLite looks these up, and runs through no index of the whole kind."""

    inherit_cache = False


@compiles(AmongOf, "sqlite")
def _among_of_sqlite(element: AmongOf, compiler: Any, **kw: Any) -> str:
    kind = compiler.process(sa.bindparam("kind", type_=sa.types.NullType()), **kw)
    given = compiler.process(element.given, **kw)
    column = compiler.process(element.column, **kw)
    # The casts give the values the affinity of the columns, without which the index of both is passed by.
    return f"(kind, {column}) IN (SELECT CAST({kind} AS TEXT), CAST(value AS INTEGER) FROM json_each({given}))"  # noqa: S608  # SQLAlchemy's own text


class Holds(ColumnElement[bool]):
    """Whether a text holds another, byte for byte."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.given = sa.bindparam(parameter, type_=sa.Text())


@compiles(Holds, "sqlite")
def _holds_sqlite(element: Holds, compiler: Any, **kw: Any) -> str:
    return f"instr({compiler.process(element.column, **kw)}, {compiler.process(element.given, **kw)}) > 0"


@compiles(Holds, "postgresql")
def _holds_postgresql(element: Holds, compiler: Any, **kw: Any) -> str:
    return f"strpos({compiler.process(element.column, **kw)}, {compiler.process(element.given, **kw)}) > 0"


class Mentions(ColumnElement[bool]):
    """Whether a JSON document holds a number anywhere."""

    inherit_cache = False
    type = _UNTYPED

    def __init__(self, column: ColumnElement[Any], parameter: str) -> None:
        self.column = column
        self.given = sa.bindparam(parameter, type_=sa.BigInteger())


@compiles(Mentions, "sqlite")
def _mentions_sqlite(element: Mentions, compiler: Any, **kw: Any) -> str:
    column, given = compiler.process(element.column, **kw), compiler.process(element.given, **kw)
    # Looking for the digits first spares most rows the reading of their JSON.
    found = f"EXISTS (SELECT 1 FROM json_tree({column}) AS part WHERE part.type = 'integer' AND part.atom = {given})"  # noqa: S608  # SQLAlchemy's own text
    return f"(instr({column}, CAST({given} AS TEXT)) > 0 AND {found})"


@compiles(Mentions, "postgresql")
def _mentions_postgresql(element: Mentions, compiler: Any, **kw: Any) -> str:
    column, given = compiler.process(element.column, **kw), compiler.process(element.given, **kw)
    return f"jsonb_path_exists({column}, '$.** ? (@ == $number)', jsonb_build_object('number', {given}))"


class Member(ColumnElement[str]):
    """A text in a JSON object, by its name."""

    inherit_cache = False
    type = sa.Text()

    def __init__(self, column: ColumnElement[Any], name: str) -> None:
        self.column = column
        self.name = name


@compiles(Member, "sqlite")
def _member_sqlite(element: Member, compiler: Any, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    # What is no JSON, `trellis check` finds; no list and no index shall fail over it. nodes_by_type is spelt like this.
    return f"CASE WHEN json_valid({column}) THEN json_extract({column}, '$.{_plain(element.name)}') END"


@compiles(Member, "postgresql")
def _member_postgresql(element: Member, compiler: Any, **kw: Any) -> str:
    return f"({compiler.process(element.column, **kw)} ->> '{_plain(element.name)}')"


def _plain(name: str) -> str:
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"not the name of a field: {name!r}")
    return name


class Beside(ColumnElement[Any]):
    """A column that no index is to be looked up by: SQLite, which keeps no statistics here, would take any one."""

    inherit_cache = False

    def __init__(self, column: ColumnElement[Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(Beside, "sqlite")
def _beside_sqlite(element: Beside, compiler: Any, **kw: Any) -> str:
    return f"+{compiler.process(element.column, **kw)}"


@compiles(Beside, "postgresql")
def _beside_postgresql(element: Beside, compiler: Any, **kw: Any) -> str:
    return str(compiler.process(element.column, **kw))


class Unled(ColumnElement[Any]):
    """A column to sort by that no index is to be walked along: where few rows pass a filter, sorting them costs less."""

    inherit_cache = False

    def __init__(self, column: sa.Column[Any]) -> None:
        self.column = column
        self.type = column.type


@compiles(Unled, "sqlite")
def _unled_sqlite(element: Unled, compiler: Any, **kw: Any) -> str:
    return f"+{compiler.process(element.column, **kw)}"


@compiles(Unled, "postgresql")
def _unled_postgresql(element: Unled, compiler: Any, **kw: Any) -> str:
    column = compiler.process(element.column, **kw)
    return f"({column} || '')" if isinstance(element.type, sa.Text) else f"({column} + 0)"
