"""The sample community of `trellis demo`, and how it is loaded."""

from trellis.cli.demo.load import load_sample

__all__ = ["load_sample"]
