"""Chooses the language of a page, and shows its texts and values in it. `trellis.languages` has the texts.

Templates mark texts with `translate`, `translate_marked`, `count_marked` and `count_nodes`, and show values through `format_text`
and `show`. `list_languages`, `choose_language` and `find_language` choose the language of a page.
"""

from trellis.admin.languages.choosing import choose_language, find_language, list_languages
from trellis.admin.languages.marks import count_marked, count_nodes, format_text, show, translate, translate_marked
