"""Lists of nodes: filtered, sorted, counted pages that cost what they show, at a million nodes too.

Three things make that so, and nothing outside this package knows of them:

- *Materialised results* (`results`). For each of the latest queries a process keeps how many nodes match, their ids if they are
  few, and *page anchors*: sort keys of nodes at known ranks, about a thousand of them over the whole order. Page 20,000 is then
  read from the nearest anchor on, not from the beginning:

      rank      0 ──────── 500,000 ─────── 500,500 ── …          sorted by name, 25 on a page
      anchor              ("mango", 81)   ("maple", 7)
      offset 500,510  →   WHERE (name_key, id) >= ("maple", 7) ORDER BY name_key, id LIMIT 25 OFFSET 10

- *The change journal* (`journal`). Triggers on `nodes` write every insert, update and delete into `node_changes`, with the row as
  it was before. A read compares the nodes changed since a result was kept with what they were, and corrects the count, the ids and
  the ranks of the anchors by that, in its own snapshot. So a total is exact whichever process has written, and no commit has to
  tell anyone. A node that was named "melon" and is now "lemon" comes before both anchors: their ranks grow by one.
- *The search index* (`search`). Trigrams of the names, updated in the background from the same journal.

The unfiltered list by id needs none of them: `trellis.store.nodes.deleted_ids` finds the n-th id by counting what was deleted.
"""

from trellis.store.lists.filters import SortBy
from trellis.store.lists.pages import Query, read_page
from trellis.store.lists.search import (
    check_search_index,
    is_search_index_behind,
    rebuild_search_index,
    trim_journal,
    update_search_index,
)

__all__ = [
    "Query",
    "SortBy",
    "check_search_index",
    "is_search_index_behind",
    "read_page",
    "rebuild_search_index",
    "trim_journal",
    "update_search_index",
]
