"""What all tables are registered in."""

from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()


def partial_index(name: str, *columns: sa.ColumnElement[Any], where: str, unique: bool = False) -> None:
    """Declare an index of the rows for which an SQL condition is true.

    `sqlite_where` and `postgresql_where` would make SQLAlchemy import both dialects where one is in use: a tenth of the time that a
    command takes. No statement is made of these; that the databases have them is tested.
    """
    sa.Index(name, *columns, unique=unique, info={"where": where})
