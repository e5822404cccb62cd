"""The name under which the application registers functions for the server to call when the process begins to end."""

from typing import Final

ENDING: Final = "trellis.ending"  # in the lifespan's state: functions to call before the server waits for requests under way
