"""What can go wrong with a provider. The texts are for people, and hold nothing secret."""


class ProviderUnavailable(Exception):
    """The provider does not answer, or not as OpenID Connect has it: nobody can sign in there at the moment."""


class ProviderRefused(Exception):
    """The provider has not let somebody in, or what it says of them is not to be believed."""
