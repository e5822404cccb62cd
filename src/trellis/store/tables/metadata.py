"""What all tables are registered in."""

import sqlalchemy as sa

METADATA = sa.MetaData()
