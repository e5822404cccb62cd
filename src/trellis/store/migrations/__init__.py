"""The history of the tables, one step a file, run by Alembic, and what running it would do."""

from trellis.store.migrations.effect import Effect
from trellis.store.migrations.plan import Plan, PlannedStep, plan_migration

__all__ = ["Effect", "Plan", "PlannedStep", "plan_migration"]
