"""Nodes: tree or list, form, moving, deleting, access of a group. `pages` returns the pages of a kind."""

from trellis.admin.nodes.access import describe_state
from trellis.admin.nodes.action import find_actions
from trellis.admin.nodes.delete import DeletePlan, describe_deletion
from trellis.admin.nodes.form import NodeForm, build_form, describe_field, format_groups, format_value, list_choices
from trellis.admin.nodes.index import pages
from trellis.admin.nodes.move import note_on_manager, refuse_conflict, tell_person
from trellis.admin.nodes.names import GroupNames, fetch_groups, fetch_names, fetch_record_names, path_above
from trellis.admin.nodes.node import of_node, show_missing
from trellis.admin.nodes.picker import Picker, build_picker, has_new_search, is_search
from trellis.admin.nodes.tree import describe_lock, find_guests, node_badges, node_colour, tree_address
from trellis.admin.nodes.versions import content_version, node_version
