"""Print docs/errors.md, the page of all errors, from the table of refusals and the catalogue, for `make snapshot`."""

from collections import defaultdict
from http import HTTPStatus
from typing import Final

from trellis.compose import catalogue_of
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS, Refusal, Scope
from trellis.rest.docs.refusals import refusals_of

_HEAD: Final = """\
# Errors by code

<!-- Written by `make snapshot`. -->

This page lists every error that the API returns on purpose, by its code and by its HTTP status. The [guide](guide.md#errors)
explains how to read an error response, and the reference of a running service, at `/api/docs`, lists the errors of each operation.
Each pair of `errorCode` and `errorMessage` has one meaning, and is never reused.

## By code

| `errorCode` | `errorMessage` | from |
|---|---|---|
"""


_MOST_NAMED: Final = 4  # operations, beyond which they are counted


def errors_page() -> str:
    """Return the page as Markdown."""
    found = _codes()
    lines = [_HEAD]
    lines += [
        f"| `{code}` | [`{message}`](#{message.lower()}) | {_place(REFUSALS[message], code, operations)} |\n"
        for (code, message), operations in sorted(found.items())
    ]
    codes = defaultdict(list)
    for code, message in found:
        codes[message].append(code)
    for status in sorted({refusal.status for refusal in REFUSALS.values()}):
        lines.append(f"\n## {status} {HTTPStatus(status).phrase}\n")
        lines += [_entry(refusal, sorted(codes[refusal.message])) for refusal in REFUSALS.values() if refusal.status == status]
    return "".join(lines)


def _codes() -> dict[tuple[str, str], list[str]]:
    """Find every code with its message, and the operations that can return it over REST."""
    found: dict[tuple[str, str], list[str]] = {(r.code, r.message): [] for r in REFUSALS.values() if r.code}
    for operation in catalogue_of(KINDS).values():
        if operation.path:
            for refused in refusals_of(operation):
                found.setdefault((refused.code, refused.message), []).append(operation.name)
    return found


def _place(refusal: Refusal, code: str, operations: list[str]) -> str:
    """Say which operations can return a code."""
    if refusal.scope not in {Scope.DECLARED, Scope.NONE} and code == refusal.code:
        return str(refusal.scope.value)
    if len(operations) > _MOST_NAMED:
        return f"{len(operations)} operations"
    return ", ".join(f"`{name}`" for name in operations) or "not over REST, or before an operation is found"


def _entry(refusal: Refusal, codes: list[str]) -> str:
    named = ", ".join(f"`{code}`" for code in codes)
    parts = [f"\n### {refusal.message}\n\n*{refusal.title}* · {named}\n\n{refusal.when}\n"]
    if refusal.members:
        parts.append("\n")
        parts += [f"- `{member.name}`: {member.doc}\n" for member in refusal.members]
    if refusal.headers:
        parts.append(f"\nWith the header {', '.join(f'`{name}`' for name in sorted(refusal.headers))}.\n")
    return "".join(parts)


if __name__ == "__main__":
    print(errors_page(), end="")
