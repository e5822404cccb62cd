"""The end of the process, as the server tells the application of it before it waits for the requests under way."""

from typing import Final

ENDING: Final = "trellis.ending"  # in the state of the lifespan: functions to call then
