"""The command that reports whether a key or a group may do something, for people and for pipelines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from trellis.cli.community import act, community
from trellis.cli.terminal import FAILED, MISUSED, Failure, Json, format_refusal, refuse_empty, show, show_json
from trellis.errors import Refused
from trellis.settings import Settings


def may(
    holder: Annotated[str, typer.Argument(metavar="WHO", help="A key: its id, its public part or its name; or a group: group:3.")],
    operation: Annotated[
        str, typer.Argument(metavar="WHAT", help="An operation, such as forums.delete; for a group, a right, such as forums.read.")
    ],
    node: Annotated[str | None, typer.Argument(metavar="[ID]", help="The node that it is about.", show_default=False)] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="IP", help="The address that it is used from.", show_default=False, callback=refuse_empty()),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The time at which it is used (ISO 8601).", show_default=False, callback=refuse_empty()),
    ] = None,
    as_dry_run: Annotated[bool, typer.Option("--dry-run", help="Ask for a dry run.")] = False,
    json: Json = False,
) -> None:
    """Say whether a key may run an operation, or a group has a right, and if not, why.

    Exit 0: yes; 1: no; 2: there is no such key, operation or node, or nobody could be asked.
    """
    raw: dict[str, Any] = {"holder": holder, "operation": operation, "asDryRun": as_dry_run}
    raw |= {name: value for name, value in (("id", node), ("address", address), ("at", at)) if value is not None}
    with _no_answer_apart():
        with community(Settings.load()) as gate:
            answer = act(gate, "access.check", raw).value
        if json:
            show_json(answer)
        else:
            show(answer["detail"], style="green" if answer["may"] else "red")
    if not answer["may"]:
        raise typer.Exit(FAILED)


@contextmanager
def _no_answer_apart() -> Iterator[None]:
    """End with 2 if there is no answer, which differs from No: a pipeline that asserts that a key may not must notice this."""
    try:
        yield
    except Refused as refused:
        raise Failure(format_refusal(refused), MISUSED) from None
    except (Failure, OSError) as failure:  # OSError: of the output
        raise Failure(str(failure), MISUSED) from failure
