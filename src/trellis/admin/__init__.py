"""The administration panel: pages on which every action is an operation, run through the gate."""

from typing import Final

from trellis.core.admins import create_first_run_token
from trellis.core.gate import Gate

PREFIX: Final = "/admin"  # the path of the panel


def first_run_link(gate: Gate, base_url: str) -> str | None:
    """Create a one-time link, valid for an hour, to the page that creates the first administrator; None if there already is one.

    `base_url` is where the service is reached, such as http://127.0.0.1:8000. Waits for the writer.
    """
    token = create_first_run_token(gate)
    return None if token is None else f"{base_url.rstrip('/')}{PREFIX}/first-run/{token}"
