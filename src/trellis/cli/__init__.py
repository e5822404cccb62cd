"""The command line: `trellis`, its commands, and what they print."""

import sys


def main() -> None:
    """Run the command line. Ctrl-C ends it with status 130, also while it is loaded."""
    try:
        from trellis.cli.app import main as run  # noqa: PLC0415  # it takes long enough for Ctrl-C

        run()
    except KeyboardInterrupt:
        sys.exit(130)
