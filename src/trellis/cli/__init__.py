"""The command line: `trellis`, its commands, and what they print."""

from trellis.cli.app import main

__all__ = ["main"]
