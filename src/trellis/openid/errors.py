"""What can go wrong with a provider. The texts are for people, and hold nothing secret."""


class ProviderError(Exception):
    """Something went wrong; `told` is the sentence for people."""

    def __init__(self, told: str) -> None:
        super().__init__(told)
        self.told = told


class ProviderUnavailable(ProviderError):
    """The provider does not answer, or not as OpenID Connect has it: nobody can sign in there at the moment."""


class ProviderRefused(ProviderError):
    """The provider has not let somebody in, or what it says of them is not to be believed."""
