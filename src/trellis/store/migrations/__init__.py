"""The migration steps of the tables, one per file, which Alembic runs, and the plan of what running them would do."""

from trellis.store.migrations.effect import Effect
from trellis.store.migrations.plan import MigrationPlan, list_blocked, plan_migration
