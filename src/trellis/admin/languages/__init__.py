"""Languages: texts are written in English where they are used, and looked up in the catalogue of the page's language.

From outside: `ENGLISH`; what templates mark texts with: `translate`, `translate_marked`, `count_marked` and `count_nodes`; and
`format_text` and `show`, through which they show values.
"""

from trellis.admin.languages.language import ENGLISH, Language
from trellis.admin.languages.marks import count_marked, count_nodes, format_text, show, translate, translate_marked

__all__ = ("ENGLISH", "Language", "count_marked", "count_nodes", "format_text", "show", "translate", "translate_marked")
