"""Column types that SQLite and PostgreSQL declare differently. Migration steps use them too: do not change one, add another."""

from typing import Any

import sqlalchemy as sa

# Text that both engines compare byte by byte. PostgreSQL's default collation differs from machine to machine.
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


class _Json(sa.types.TypeDecorator[Any]):
    """JSON, which PostgreSQL stores as JSONB."""

    impl = sa.JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(sa.JSON(none_as_null=True))
        from sqlalchemy.dialects.postgresql import JSONB  # noqa: PLC0415  # start-up time: SQLite does not need it

        return dialect.type_descriptor(JSONB(none_as_null=True))


JSON = _Json()
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
