"""Structure documents: exporting one, planning what one would change, and applying that plan."""

from trellis.admin.structure.pages import PAGES
from trellis.admin.structure.plan import describe_plan
