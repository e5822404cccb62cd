"""The bounds of a grant: which nodes it is for, when it ends, how often it may be used, and whether calls need approval."""

from trellis.core.bounds.bound import (
    ALLOW,
    LEVELS,
    NO_BOUNDS,
    PROPOSE,
    WHOLE,
    Bound,
    describe_per_day,
    digest_reach,
    read_bounds,
)
from trellis.core.bounds.judge import ProposalNeeded, find_broken_condition, judge_calls, judge_end, refuse_not_granted
from trellis.core.bounds.reach import Reach, find_reach, is_own_only, judge_touched
from trellis.core.bounds.uses import Use, counting, find_uses, record_uses, take_off
