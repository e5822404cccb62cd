"""The command that checks everything around the service that an operator can get wrong, and says what to do."""

from trellis.cli.doctor.command import doctor
from trellis.cli.doctor.database import judge_clocks
from trellis.cli.doctor.finding import State
