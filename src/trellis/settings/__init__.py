"""The settings of an operator: read from TRELLIS_* variables, files and .env when the program starts, checked, and frozen.

`fields` declares each setting, `texts` parses the texts of variables, and `checks` refuses settings that do not fit together.
"""

from trellis.settings.settings import Settings, definitions, description, holds_secrets
from trellis.settings.texts import DOTENV, PREFIX, SettingsError, is_local, is_this_machine, split_group_roles, variable
