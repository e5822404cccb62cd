"""Languages: texts are written in English where they are used, and looked up in the catalogue of the page's language.

From outside: `ENGLISH`, and what templates mark their texts with: `translate`, `translate_marked`, `count_marked` and
`count_nodes`.
"""

from trellis.admin.languages.language import ENGLISH, Language
from trellis.admin.languages.marks import count_marked, count_nodes, translate, translate_marked

__all__ = ("ENGLISH", "Language", "count_marked", "count_nodes", "translate", "translate_marked")
