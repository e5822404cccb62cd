"""Moving in from Invision Community, by translating its API's answers into a structure document; and exporting such answers."""

from trellis.invision.answers import Answers, ReadingFailed
from trellis.invision.export import export_answers
from trellis.invision.present import read_present
from trellis.invision.report import Report, write_html, write_text
from trellis.invision.saved import check_folder, name_answers, read_saved, write_saved
from trellis.invision.suite import choose_known, find_paths
from trellis.invision.translate import Options, translate
