"""The signature, against the public library and against a known example."""

import base64
import time

from standardwebhooks import Webhook

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
