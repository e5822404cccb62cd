"""The tables of the community's nodes, their order, and the data derived from them."""

import sqlalchemy as sa

from trellis.store.column_types import JSON, NUMBER, PLAIN
from trellis.store.tables.metadata import declare_table, partial_index

nodes = declare_table(
    "nodes",
    sa.Column("kind", PLAIN, primary_key=True),
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("parent_id", NUMBER),
    sa.Column("block", NUMBER, nullable=False, server_default=sa.text("0")),  # see `sibling_blocks`; 0 if there are no blocks
    sa.Column("block_offset", NUMBER, nullable=False),  # within the block; siblings.POSITION is the position among all siblings
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("name_key", PLAIN, nullable=False),  # the case-folded name, for sorting and searching
    sa.Column("fields", JSON, nullable=False),
    sa.Column("permissions", JSON, nullable=False),
    sa.Column("created_at", PLAIN, nullable=False),
    sa.Column("updated_at", PLAIN, nullable=False),
    sa.Column("external_id", PLAIN),  # its id in another system; unique within the kind
    sa.Column("managed_by", PLAIN),  # the name of the document that last created or changed it and contains it
    sa.ForeignKeyConstraint(["kind", "parent_id"], ["nodes.kind", "nodes.id"], name="nodes_parent"),
    sa.Index("nodes_children", "kind", "parent_id", "block", "block_offset"),
    sa.Index("nodes_by_name", "kind", "name_key", "id"),
    sa.Index("nodes_by_created", "kind", "created_at", "id"),
    sa.Index("nodes_by_updated", "kind", "updated_at", "id"),
)
partial_index("nodes_by_external_id", nodes.c.kind, nodes.c.external_id, unique=True, where="external_id IS NOT NULL")
partial_index("nodes_by_position", nodes.c.kind, nodes.c.block_offset, nodes.c.id, where="block = 0")

# The blocks of a counted B-tree, which each parent with more than 64 children has: see `trellis.store.siblings`.
sibling_blocks = declare_table(
    "sibling_blocks",
    sa.Column("id", NUMBER, primary_key=True, autoincrement=False),
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("parent_id", NUMBER, nullable=False),  # the node whose children these are; 0 is the top level
    sa.Column("level", NUMBER, nullable=False),  # 0 contains rows of nodes, 1 blocks of level 0, and so on
    sa.Column("parent_block", NUMBER, nullable=False),  # the block that contains this one; 0 for the root
    sa.Column("start", NUMBER, nullable=False),  # how many siblings precede it in the parent block
    sa.Column("size", NUMBER, nullable=False),  # how many siblings it contains, at any depth
    sa.Index("sibling_blocks_by_parent_block", "parent_block"),
)
partial_index("sibling_blocks_roots", sibling_blocks.c.kind, sibling_blocks.c.parent_id, unique=True, where="parent_block = 0")

# One row per sequence (a kind, or `events`): the last number assigned, and the current number of rows.
counters = declare_table(
    "counters",
    sa.Column("name", PLAIN, primary_key=True),
    sa.Column("last", NUMBER, nullable=False),
    sa.Column("total", NUMBER, nullable=False),
)

# --- derived from the nodes, so that no list has to read all nodes --------------------------------------------------

# How many ids of a range belonged to deleted nodes: see `nodes.deleted_ids`. A range without deleted ids has no row.
deleted_id_counts = declare_table(
    "deleted_id_counts",
    sa.Column("kind", PLAIN, primary_key=True),
    sa.Column("shift", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("prefix", NUMBER, primary_key=True, autoincrement=False),  # the range contains the ids with id >> shift = prefix
    sa.Column("deleted", NUMBER, nullable=False),
)

# The change journal: the latest inserts, updates and deletes of nodes, written by triggers on `nodes`. The columns from `parent_id`
# on contain the row before the change; for an insert, only its parent. An entry with id 0 records that children of `parent_id`
# (0: the top level) have changed their positions: see `siblings.rows.note_order`.
node_changes = declare_table(
    "node_changes",
    sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("id", NUMBER, nullable=False),
    sa.Column("parent_id", NUMBER),
    sa.Column("name_key", PLAIN),
    sa.Column("fields", JSON),
    sa.Column("created_at", PLAIN),
    sa.Column("updated_at", PLAIN),
    sa.Column("change", PLAIN),  # insert, update, delete or order; null in entries older than the column
)

# The names in the search index, which is updated shortly after the nodes: see `lists.search`.
search_names = declare_table(
    "search_names",
    sa.Column("document_id", NUMBER, primary_key=True, autoincrement=True),  # the rowid in SQLite's full-text index
    sa.Column("kind", PLAIN, nullable=False),
    sa.Column("id", NUMBER, nullable=False),
    sa.Column("name_key", PLAIN, nullable=False),
    sa.Index("search_names_by_node", "kind", "id", unique=True),
)
