"""The languages of texts for people: texts are in English where they are used, and looked up in the catalogue of a language.

The package offers `OFFERED`, `ENGLISH` and `Language`, `load_language` and `load_offered`, and, for the texts of scripts,
`encode_script_texts` and `read_script_catalogues`. The panel chooses the language of a page (`trellis.admin.languages`).
"""

from trellis.languages.catalogues import OFFERED, encode_script_texts, load_language, load_offered, read_script_catalogues
from trellis.languages.language import ENGLISH, Language
