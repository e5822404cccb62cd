"""What a key may do, in a sentence: also by a verb that is declared here."""

from typing import Final

from tests.community import CATALOGUE
from trellis.admin.keys.bounds import build_rows
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.sentence import describe_abilities
from trellis.admin.times import UTC_CLOCK
from trellis.core.catalogue import Catalogue
from trellis.core.nodes.crud import build_operation
from trellis.core.operation import Outcome
from trellis.core.verbs import Verb
from trellis.kinds.calendars import CALENDARS
from trellis.kinds.forums import FORUMS

STAMP: Final = Verb(name="stamp", method="POST", tail="/{id}/stamp", answer="It.", code="77", column="Stamp")
SETTINGS: Final = {"addresses": "", "perDay": "", "rateLimit": "", "logRequests": "1", "lasts": "for 90 days"}


def test_resources_with_the_same_new_verb_have_one_phrase() -> None:
    more = [build_operation(kind, STAMP, "Stamp it", "Stamps it.", lambda *_: Outcome(None)) for kind in (FORUMS, CALENDARS)]
    grid = GrantGrid(Catalogue({"all": lambda: [*CATALOGUE.values(), *more]}))
    chosen = {f"{kind}.{verb}" for kind in ("forums", "calendars") for verb in ("get", "delete", "stamp")}
    rows = build_rows([box for box in grid.boxes if box.name in chosen], {}, None, (), UTC_CLOCK)
    assert describe_abilities(grid, rows, SETTINGS).may == ("It may read, delete and stamp forums and calendars.",)
