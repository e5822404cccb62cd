"""Lists of nodes: filtered, sorted and counted pages whose cost depends on the size of the page, not on the number of nodes.

Three techniques achieve this, and nothing outside this package depends on them:

- *Materialised results* (`results`). For each of the latest queries a process stores how many nodes match, their ids if they are
  few, and *page anchors*: sort keys of nodes at known ranks, about a thousand over the whole order. Page 20,000 is then
  read starting at the nearest anchor, not at the beginning:

      rank      0 ──────── 500,000 ─────── 500,500 ── …          sorted by name, 25 on a page
      anchor              ("mango", 81)   ("maple", 7)
      offset 500,510  →   WHERE (name_key, id) >= ("maple", 7) ORDER BY name_key, id LIMIT 25 OFFSET 10

- *The change journal* (`journal`). Triggers on `nodes` write every insert, update and delete into `node_changes`, with the row as
  it was before. A read compares the nodes that have changed since a result was stored with their old rows, and corrects the count,
  the ids and the ranks of the anchors accordingly, in its own snapshot. So a total is exact, whichever process has written, without
  any notification. A node that was named "melon" and is now "lemon" comes before both anchors, so their ranks increase by one.
- *The search index* (`search`). Trigrams of the names, updated in the background from the same journal.

The unfiltered list by id needs none of them: `trellis.store.nodes.deleted_ids` finds the n-th id by counting deleted ids.
"""

from trellis.store.lists.filters import ONE_OF, SortBy
from trellis.store.lists.inside import find_ids_inside
from trellis.store.lists.journal import note_everything
from trellis.store.lists.pages import NodePart, Query, read_page
from trellis.store.lists.search import (
    check_search_index,
    is_search_index_behind,
    rebuild_search_index,
    trim_journal,
    update_search_index,
)
