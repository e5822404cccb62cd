"""The signature, against the public library and against a known example."""

import asyncio
import base64
import time
from contextlib import closing
from dataclasses import replace

from standardwebhooks import Webhook

from tests.conftest import runner
from tests.fixture_types import Clock, Run
from tests.webhook_receiver import Receiver
from tests.webhooks.conftest import deliver
from trellis.compose import compose
from trellis.settings import Settings
from trellis.webhooks import DeliveryWorker
from trellis.webhooks.signing import sign

# The example of the Standard Webhooks specification and its libraries.
SECRET = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_known_example() -> None:
    signed = sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [base64.b64decode(SECRET)])
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_of_two_secrets_verifies() -> None:
    secrets = [b"a" * 32, b"b" * 32]
    now = int(time.time())
    body = '{"name":"Grüße"}'.encode()
    headers = {"webhook-id": "m", "webhook-timestamp": str(now), "webhook-signature": sign("m", now, body, secrets)}
    for secret in secrets:
        assert Webhook(base64.b64encode(secret).decode()).verify(body, headers) == {"name": "Grüße"}


def test_after_the_key_of_all_secrets_was_changed_a_rotated_one_signs_at_once(
    settings: Settings, clock: Clock, receiver: Receiver, run: Run
) -> None:
    with closing((before := compose(replace(settings, webhook_key="one" * 20), clock=clock)).store):
        runner(before)("webhooks.create", url=receiver.url, events=["*"])
    with closing((gate := compose(replace(settings, webhook_key="two" * 20), clock=clock)).store):
        rotated = runner(gate)("webhooks.rotate", 1)
        runner(gate)("forums.create", name="News")
        asyncio.run(deliver(DeliveryWorker(gate)))
    assert receiver.received, run("deliveries.list")["results"][0]["attempts"]
    assert receiver.received[0].verified(rotated["secret"])["type"] == "forum.created"
