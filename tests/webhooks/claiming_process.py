"""A process that holds webhook 1, says so, and goes on until it is killed. Its argument is a database."""

import sys
import time

from trellis.compose import compose
from trellis.settings import Settings
from trellis.store.webhooks import endpoints
from trellis.webhooks.holder import name_worker


def main() -> None:
    """Hold it."""
    gate = compose(Settings.load({"TRELLIS_DATABASE_URL": sys.argv[1]}, None))
    assert gate.store.write(lambda tx: endpoints.claim(tx, 1, name_worker(), None)).result(60)
    sys.stdout.write("held\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main()
