"""Which language a page is in, and how its template says texts and shows values in it. `trellis.languages` has the texts.

From outside: what templates mark texts with: `translate`, `translate_marked`, `count_marked` and `count_nodes`; `format_text` and
`show`, through which they show values; and how the language of a page is chosen: `list_languages`, `choose_language` and
`find_language`.
"""

from trellis.admin.languages.choosing import choose_language, find_language, list_languages
from trellis.admin.languages.marks import count_marked, count_nodes, format_text, show, translate, translate_marked

__all__ = (
    "choose_language",
    "count_marked",
    "count_nodes",
    "find_language",
    "format_text",
    "list_languages",
    "show",
    "translate",
    "translate_marked",
)
