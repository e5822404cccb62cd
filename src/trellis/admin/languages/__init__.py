"""Languages: texts are written in English where they are used, and looked up in the catalogue of the page's language.

From outside: `ENGLISH`; what templates mark texts with: `translate`, `translate_marked`, `count_marked` and `count_nodes`; and
`format_text` and `show`, through which they show values; and how the language of a page is chosen: `list_languages`,
`choose_language` and `find_language`, and what scripts say in it: `encode_script_texts`, `read_script_catalogues`.
"""

from trellis.admin.languages.catalogues import encode_script_texts, read_script_catalogues
from trellis.admin.languages.choosing import choose_language, find_language, list_languages
from trellis.admin.languages.language import ENGLISH, Language
from trellis.admin.languages.marks import count_marked, count_nodes, format_text, show, translate, translate_marked

__all__ = (
    "ENGLISH",
    "Language",
    "choose_language",
    "count_marked",
    "count_nodes",
    "encode_script_texts",
    "find_language",
    "format_text",
    "list_languages",
    "read_script_catalogues",
    "show",
    "translate",
    "translate_marked",
)
