"""The command that sends a test mail."""

import secrets
from typing import Annotated

import typer

from trellis.cli.community import community
from trellis.cli.terminal import MISUSED, Failure, make_app, show
from trellis.core.admins import EMAIL
from trellis.core.fields import Invalid
from trellis.core.mail import write_test
from trellis.mail import MailServer, NotSent
from trellis.settings import Settings

app = make_app(no_args_is_help=True)


@app.callback()
def _mail() -> None:
    """Test the mail server."""


@app.command()
def test(address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where to send the mail.", show_default=False)]) -> None:
    """Send a test mail at once, through the server in the settings, and show what it answers."""
    settings = Settings.load()
    if settings.smtp_host is None:
        raise Failure("There is no mail server: set TRELLIS_SMTP_HOST and TRELLIS_SMTP_FROM.", MISUSED)
    try:
        to = EMAIL.type.parse(address)
    except Invalid as wrong:
        raise Failure(f"ADDRESS {wrong}", MISUSED) from None
    with community(settings) as gate:
        text = write_test(gate.environment)
    try:
        MailServer(settings).send(to, *text, secrets.token_hex(16))
    except NotSent as refused:
        raise Failure(f"The mail was not sent. {refused}") from None
    show(f"{settings.smtp_host} has accepted the mail to {to}.")
