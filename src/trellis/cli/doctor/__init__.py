"""The command that looks at everything around the service which an operator can get wrong, and says what to do."""

from trellis.cli.doctor.command import doctor

__all__ = ["doctor"]
