"""What each service would make anew: it is made before services are forked."""

from trellis.compose import _catalogue_of_all
from trellis.core.structure import build_schema
from trellis.kinds import KINDS

tuple(_catalogue_of_all().values())
build_schema(tuple(KINDS))
