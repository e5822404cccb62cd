"""Print the JSON Schema of structure documents, as `/api/structure.schema.json` serves it, for `make snapshot`."""

import sys

import orjson

from trellis.core.structure import build_schema
from trellis.kinds import KINDS


def main() -> None:
    """Print it."""
    sys.stdout.buffer.write(orjson.dumps(build_schema(KINDS), option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
