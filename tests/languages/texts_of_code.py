"""The texts of the code that catalogues translate, which one process of a test run finds for all: it reads the whole package."""

import os
import pickle
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from scripts.catalogues import Text, find_texts
from tests.savings import FOLDER


@cache
def find_all_texts() -> Mapping[str, frozenset[Text]]:
    """Return all texts, by area, as `find_texts` does."""
    kept = Path(os.environ[FOLDER]) / "texts"
    if not kept.exists():
        beside = kept.with_suffix(f".{os.getpid()}")
        beside.write_bytes(pickle.dumps({area: frozenset(texts) for area, texts in find_texts().items()}))
        beside.replace(kept)
    texts: Mapping[str, frozenset[Text]] = pickle.loads(kept.read_bytes())  # noqa: S301  # it is ours
    return texts
