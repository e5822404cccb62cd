"""The verbs of proposals, which no other resource has."""

from typing import Final

from trellis.core.verbs import Body, Verb

PATH: Final = "/core/proposals"
WITHDRAW: Final = Verb(
    name="withdraw",
    method="POST",
    tail="/{id}/withdraw",
    body=Body.OPTIONS,
    answer="The withdrawn proposal.",
    if_match=True,
)
APPROVE: Final = Verb(
    name="approve",
    method="POST",
    tail="/{id}/approve",
    body=Body.OPTIONS,
    answer="The proposal, with the `result` of its call.",
    idempotency_key=True,
    destructive=True,
    if_match=True,
)
REJECT: Final = Verb(
    name="reject",
    method="POST",
    tail="/{id}/reject",
    body=Body.NEW,
    answer="The rejected proposal.",
    if_match=True,
)
