"""The terminal door: `trellis`, its commands, and what they show."""

from trellis.cli.app import main

__all__ = ["main"]
