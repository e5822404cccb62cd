"""Nodes: tree or list, form, moving, deleting, access of a group. `pages` returns the pages of a kind."""

from trellis.admin.nodes.action import find_actions
from trellis.admin.nodes.delete import DeletePlan, describe_deletion
from trellis.admin.nodes.form import ACTION
from trellis.admin.nodes.index import pages
from trellis.admin.nodes.names import fetch_groups, fetch_names, fetch_record_names
from trellis.admin.nodes.picker import Picker, build_picker
from trellis.admin.nodes.tree import node_badges, node_colour, tree_address

__all__ = [
    "ACTION",
    "DeletePlan",
    "Picker",
    "build_picker",
    "describe_deletion",
    "fetch_groups",
    "fetch_names",
    "fetch_record_names",
    "find_actions",
    "node_badges",
    "node_colour",
    "pages",
    "tree_address",
]
