"""What is asked of the provider, how often, and what becomes of a provider that cannot be asked."""

import asyncio
from types import SimpleNamespace

import pytest

from trellis.core.admins import Purpose, SignOnRequest
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


def test_nobody_waits_longer_than_for_an_answer_behind_others_who_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    request = SignOnRequest(Purpose.SIGN_ON, "state", "nonce", "verifier", 0.0)

    async def come_back_together() -> None:
        go_on, exchanged = asyncio.Event(), list[str]()

        async def exchange(_provider: Provider, _request: SignOnRequest, _metadata: object, code: str, _now: float) -> str:
            await go_on.wait()
            exchanged.append(code)
            return code

        async def find_metadata(_provider: Provider) -> object:
            return SimpleNamespace(tells_issuer=False)

        monkeypatch.setattr(Provider, "_exchange", exchange)
        monkeypatch.setattr(Provider, "find_metadata", find_metadata)
        monkeypatch.setattr(openid_client, "SECONDS", 0.05)
        provider = Provider(Settings(sso_issuer="https://id.example"))
        first = [asyncio.create_task(provider.identify(request, {"code": str(number)}, 0.0)) for number in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(ProviderUnavailable, match="Too many people are signing in through it at the same time"):
            await provider.identify(request, {"code": "late"}, 0.0)
        assert exchanged == []
        go_on.set()
        await asyncio.gather(*first, provider.identify(request, {"code": "again"}, 0.0))
        assert exchanged == ["0", "1", "2", "3", "again"]

    asyncio.run(come_back_together())
