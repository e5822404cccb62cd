"""The errors of a provider. Their texts are for people, and contain nothing secret."""


class ProviderError(Exception):
    """Something went wrong; `told` is the sentence for people."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


class ProviderUnavailable(ProviderError):
    """The provider does not answer, or not as OpenID Connect requires: nobody can sign in there at the moment."""


class ProviderRefused(ProviderError):
    """The provider did not let somebody in, or its answer about them cannot be trusted."""
