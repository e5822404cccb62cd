"""Moving in from Invision Community: its answers are read, or taken from files, and translated into a structure document."""

from trellis.invision.answers import Answers, ReadingFailed
from trellis.invision.present import read_present
from trellis.invision.report import Report, write_html, write_text
from trellis.invision.saved import check_folder, name_answers, read_saved, write_saved
from trellis.invision.suite import find_paths
from trellis.invision.translate import Options, Translation, translate

__all__ = [
    "Answers",
    "Options",
    "ReadingFailed",
    "Report",
    "Translation",
    "check_folder",
    "find_paths",
    "name_answers",
    "read_present",
    "read_saved",
    "translate",
    "write_html",
    "write_saved",
    "write_text",
]
