"""Measures services by turns under each case, and sees that what they answer is right."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.forest import forest
from bench.others.cases import FORUMS, PAGE, Case, Request, Service
from bench.over_http import Rep, rep_of
from bench.process import cores
from bench.wrk import Load, Starved, Unusable, judged, wrk

_SCRIPT: Final = Path(__file__).parent / "load.lua"
_CLIENTS: Final = 32
_WARM: Final = 1  # seconds
_NAMES: Final = {forum.id: forum.name for forum in forest("realistic", FORUMS)[0]}


def measured(
    case: Case, services: Sequence[Service], repetitions: int, seconds: int, say: Callable[[str], None]
) -> dict[str, list[Rep]]:
    """Measure a case: service → one repetition after the other. Raises Unusable if answers are not what the case says."""
    found: dict[str, list[Rep]] = {service.name: [] for service in services}
    for number in range(repetitions + 1):  # the first warms up
        for service in services:
            say(f"{case.title}: {service.name}, {f'{number} of {repetitions}' if number else 'warming up'}")
            try:
                rep = _steady(case, service, seconds if number else _WARM, number + 1)
            except Unusable as error:
                raise Unusable(f"{case.title}, {service.name}: {error}") from None
            if number:
                found[service.name].append(rep)
    return found


def _steady(case: Case, service: Service, seconds: int, seed: int) -> Rep:
    """Measure once; once more, and for longer, where the machine had no time for it."""
    try:
        return _run(case, service, seconds, seed)
    except Starved:
        return _run(case, service, seconds + 3, seed + 100)


def _run(case: Case, service: Service, seconds: int, seed: int) -> Rep:
    arguments = [service.token, str(seed), *map(str, case.ids)]
    for kind, share in case.shares.items():
        request = service.requests[kind]
        arguments += [str(share), request.method, request.path, request.body]
    size = _verify(case, service)
    before = _settled(service)
    cpu = service.server.cpu()
    load = wrk(service.server.address, "kinds", arguments, seconds, cores()[1], _CLIENTS, script=_SCRIPT)
    cpu = service.server.cpu() - cpu
    _judge(case, load, size, _settled(service) - before)
    _verify(case, service)
    return rep_of(load, cpu, service.server.memory())


def _judge(case: Case, load: Load, size: int, more: int) -> None:
    """See that every request was answered as it should be, and that as many forums came of it as creates were answered."""
    judged(load, refusals=False, size=None)
    mean = load.bytes / load.requests
    if case.fixed and not 0.75 * size < mean < size + 2000:  # at most 2,000 bytes of headers
        raise Unusable(f"The answers had {mean:.0f} bytes on average; one that was read had {size} without its head.")
    if case.shares.keys() == {"create"}:
        least, most = load.requests, load.requests + _CLIENTS  # those that were under way at the end
    else:
        least, most = 0, load.requests if "create" in case.shares else 0
    if not least <= more <= most:
        raise Unusable(f"Of {load.requests} answers came {more} forums, not {least} to {most}.")


def _verify(case: Case, service: Service) -> int:
    """Ask once for each kind, and see that the answers are right; give the bytes of the body of the last."""
    size = 0
    for kind in case.shares:
        if kind in {"read", "list"}:
            for id_ in {*case.ids, sum(case.ids) // 2}:
                size = _read(service, service.requests[kind], id_)
        elif kind == "update":
            _update(service, case.ids[0])
        else:
            _create(service, case.ids[0])
    _refuse(service, case.ids[0])
    return size


def _read(service: Service, request: Request, id_: int) -> int:
    body = _asked(service, request, id_, 0)
    records = service.records(json.loads(body))
    wanted = PAGE if "{id}" not in request.path else 1
    if len(records) != wanted or any(record["name"] != _NAMES.get(record["id"]) for record in records):
        raise Unusable(f"The answer to {request.path} does not have {wanted} forums by their names: {body[:300]!r}")
    if wanted == 1 and records[0]["id"] != id_:
        raise Unusable(f"The forum {id_} was asked for, and {records[0]['id']} came.")
    return len(body)


def _update(service: Service, id_: int) -> None:
    number = service.total() + 7
    _asked(service, service.requests["update"], id_, number)
    (record,) = service.records(json.loads(_asked(service, service.requests["read"], id_, 0)))
    if f"Changed by the bench, {number}." not in record["description"]:
        raise Unusable(f"The forum {id_} was changed, and what was read of it afterwards is as before.")


def _settled(service: Service) -> int:
    """Count the forums, once those requests are done that were under way when wrk stopped listening."""
    before = -1
    while (now := service.total()) != before:
        before = now
        time.sleep(0.3)
    return now


def _create(service: Service, parent: int) -> None:
    before = _settled(service)
    body = _asked(service, service.requests["create"], parent, 0)
    (record,) = service.records(json.loads(body))
    if service.total() != before + 1 or record["name"] != "Made by the bench 0":
        raise Unusable(f"A forum was created, and there are {service.total() - before} more: {body[:300]!r}")


def _refuse(service: Service, id_: int) -> None:
    """See that a token is asked for: without a right one nothing is read."""
    status, body = _sent(service, service.requests["read"], id_, 0, f"{service.token[:-6]}aaaaaa")
    if status not in {401, 403}:
        raise Unusable(f"Somebody with a wrong token was answered {status}: {body[:300]!r}")


def _asked(service: Service, request: Request, id_: int, number: int) -> bytes:
    status, body = _sent(service, request, id_, number, service.token)
    if status != request.status:
        raise Unusable(f"The answer to {request.method} {request.path} was {status} instead of {request.status}: {body[:300]!r}")
    return body


def _sent(service: Service, request: Request, id_: int, number: int, token: str) -> tuple[int, bytes]:
    values: Mapping[str, Any] = {"{id}": id_, "{n}": number}
    path, body = request.path, request.body
    for name, value in values.items():
        path, body = path.replace(name, str(value)), body.replace(name, str(value))
    headers = {"Authorization": f"Bearer {token}"} | ({"Content-Type": "application/json"} if body else {})
    with closing(HTTPConnection(urlsplit(service.server.address).netloc, timeout=60)) as connection:
        connection.request(request.method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
