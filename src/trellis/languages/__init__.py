"""The languages that people are spoken to in: texts are in English where they are used, and looked up in a language's catalogue.

From outside: `ENGLISH` and `Language`; `load_language` and `load_offered`, and what scripts say in one: `encode_script_texts` and
`read_script_catalogues`. Which language a page is in is the panel's concern (`trellis.admin.languages`).
"""

from trellis.languages.catalogues import encode_script_texts, load_language, load_offered, read_script_catalogues
from trellis.languages.language import ENGLISH, Language

__all__ = (
    "ENGLISH",
    "Language",
    "encode_script_texts",
    "load_language",
    "load_offered",
    "read_script_catalogues",
)
