"""What is asked of the provider, how often, and what becomes of a provider that cannot be asked."""

import asyncio
from types import SimpleNamespace

import pytest

from trellis.openid import Provider, ProviderUnavailable
from trellis.openid import provider as openid_client
from trellis.sentences import say
from trellis.settings import Settings


def test_those_who_have_waited_for_a_provider_that_hangs_do_not_wait_for_it_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(now=1000.0, asked=0)

    async def hang(*_: object) -> object:
        clock.asked += 1
        await asyncio.sleep(0)
        clock.now += 10
        raise ProviderUnavailable(say("It sent no complete answer within {seconds:g} seconds.", seconds=10))

    async def sign_in_together() -> list[object]:
        provider = Provider(Settings(sso_issuer="https://id.example"))
        return await asyncio.gather(*(provider.find_metadata() for _ in range(5)), return_exceptions=True)

    monkeypatch.setattr(Provider, "_fetch", hang)
    monkeypatch.setattr(openid_client, "time", SimpleNamespace(monotonic=lambda: clock.now))
    found = asyncio.run(sign_in_together())
    assert [str(one) for one in found] == ["It sent no complete answer within 10 seconds."] * 5
    assert (clock.asked, clock.now) == (1, 1010.0)


def test_an_issuer_whose_host_is_no_name_is_a_provider_that_cannot_be_reached() -> None:
    with pytest.raises(ProviderUnavailable, match="The connection failed: Codepoint"):
        asyncio.run(Provider(Settings(sso_issuer="https://xn--a")).find_metadata())
