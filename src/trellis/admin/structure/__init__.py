"""Structure documents: exporting one, planning what one would change, and applying that plan. Notes on nodes that one manages."""

from trellis.admin.structure.pages import PAGES

__all__ = ["PAGES"]
