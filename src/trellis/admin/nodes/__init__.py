"""Nodes: tree or list, form, moving, deleting, access of a group."""

from trellis.admin.nodes.action import actions_of
from trellis.admin.nodes.form import DO, groups_of
from trellis.admin.nodes.index import pages
from trellis.admin.nodes.outline import colour, marks, shown_at

__all__ = ["DO", "actions_of", "colour", "groups_of", "marks", "pages", "shown_at"]
