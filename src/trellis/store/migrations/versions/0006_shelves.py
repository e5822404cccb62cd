"""Keeps the order of many siblings in blocks, so that adding or removing one changes only those next to it."""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.migrations.effect import Effect

revision = "0006"
down_revision = "0005"
effect = Effect(seconds={"nodes": (10, 60)}, blocks=("nodes",), reads=False, writes=False)

_MANY = 64  # more siblings than these are dealt out
_PER = 48  # so many to a shelf
_HEIGHT = 3  # the highest level that a shelf can have


def upgrade() -> None:
    """Add the shelves, and put on them whoever has more siblings than one takes."""
    op.drop_index("nodes_by_position", "nodes")
    op.add_column("nodes", sa.Column("shelf", NUMBER, nullable=False, server_default=sa.text("0")))
    numbers = ("parent_id", "level", "above", "before", "size")
    shelves = op.create_table(
        "shelves",
        sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
        sa.Column("kind", PLAIN, nullable=False),
        *(sa.Column(name, NUMBER, nullable=False) for name in numbers),
    )
    _deal_out(shelves)
    op.drop_index("nodes_children", "nodes")  # only now: it finds the families
    whole, few = sa.text("above = 0"), sa.text("shelf = 0")
    op.create_index("shelves_within", "shelves", ["above"])
    op.create_index("shelves_of_family", "shelves", ["kind", "parent_id"], unique=True, sqlite_where=whole, postgresql_where=whole)
    op.create_index("nodes_children", "nodes", ["kind", "parent_id", "shelf", "position"])
    op.create_index("nodes_by_position", "nodes", ["kind", "position", "id"], sqlite_where=few, postgresql_where=few)
    if op.get_bind().dialect.name == "postgresql":  # or else it would plan by what it knew before, until it looks again
        op.execute("ANALYZE nodes, shelves")


def _deal_out(shelves: sa.Table) -> None:
    connection = op.get_bind()
    nodes = sa.table("nodes", *(sa.column(name) for name in ("kind", "parent_id", "shelf")), sa.column("position", sa.Integer))
    family, position, many = (nodes.c.kind, nodes.c.parent_id), nodes.c.position, sa.func.count()
    large = connection.execute(sa.select(*family, many).group_by(*family).having(many > _MANY)).all()
    first = 1
    for kind, parent, count in large:
        connection.execute(
            sa.update(nodes)
            .where(nodes.c.kind == kind, nodes.c.parent_id.is_(None) if parent is None else nodes.c.parent_id == parent)
            .values(shelf=first + position // _PER, position=position % _PER)
        )
        rows = [{"kind": kind, "parent_id": parent or 0, **row} for row in _dealt(count, first)]
        connection.execute(sa.insert(shelves), rows)
        first += len(rows)


def _dealt(count: int, first: int) -> Iterator[dict[str, int]]:
    sizes = [_PER] * (count // _PER) + ([count % _PER] if count % _PER else [])
    level = 0
    while True:
        upper = first + len(sizes)
        group = len(sizes) if len(sizes) <= _MANY or level + 1 >= _HEIGHT else _PER
        sums = [sum(sizes[start : start + group]) for start in range(0, len(sizes), group)]
        before = 0
        for at, size in enumerate(sizes):
            before = before if at % group else 0
            yield {"id": first + at, "level": level, "above": upper + at // group, "before": before, "size": size}
            before += size
        first, level, sizes = upper, level + 1, sums
        if len(sizes) == 1:
            yield {"id": first, "level": level, "above": 0, "before": 0, "size": count}
            return
