"""What operations do to records, and in which order that is told."""

from typing import Literal

Verb = Literal["list", "get", "create", "update", "delete"]
VERBS: tuple[Verb, ...] = ("list", "get", "create", "update", "delete")
