"""Trellis: the structure service of a community platform, over REST, a panel and a command line."""

from importlib.metadata import version

__version__ = version("trellis")
