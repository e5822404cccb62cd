"""The kinds of nodes, one declaration each. A new kind is a new file in this folder and a line in this list.

Each subfolder is a dialect, with a declaration for each kind that its clients know.
"""

from typing import Final

from trellis.core.nodes import NodeKind
from trellis.kinds.blogs import BLOGS
from trellis.kinds.calendars import CALENDARS
from trellis.kinds.categories import CATEGORIES
from trellis.kinds.forums import FORUMS
from trellis.kinds.groups import GROUPS

KINDS: Final[tuple[NodeKind, ...]] = (GROUPS, FORUMS, BLOGS, CALENDARS, CATEGORIES)
