"""Trellis: the structure service of a community platform, over REST, a panel and a command line."""

__version__ = "0.1.0"
