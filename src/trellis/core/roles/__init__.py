"""Roles of administrators: which operations each role may run, as data that is separate from the operations."""

from trellis.core.roles.permit import Permit, Permits
from trellis.core.roles.table import OWN, OWNER, ROLES, find_role
