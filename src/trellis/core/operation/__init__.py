"""Operations, their calls, and what they need to know about the service. Every act on the community is an operation."""

from trellis.core.operation.access import ANY_KEY, GRANTED, INSIDE, Access, Basis
from trellis.core.operation.call import Call, Progress
from trellis.core.operation.judge import SessionEnded, conclude, is_allowed, judge_role, renew_actor
from trellis.core.operation.operation import DRY_RUN, Context, Environment, Fork, Operation, Preparation, Together, targeted_write
from trellis.core.operation.outcome import Fate, Outcome, RawText
from trellis.core.operation.policies import GroupRole, Raised, SecondFactorPolicy, SignOnPolicy, WebhookPolicy
from trellis.core.operation.readable import select_readable
from trellis.core.operation.together import OneByOne, check_weight, run_together
