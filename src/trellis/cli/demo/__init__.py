"""The sample community of `trellis demo`, and the code that loads it."""

from trellis.cli.demo.load import load_sample
