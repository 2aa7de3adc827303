"""What a client sends to be let in is nowhere to be seen: not in an error, nor in any error that it came from, whatever the server says back."""

import logging
import traceback

import pytest
from scripted_triton import ROW

import tritongen
from tritongen.client.calls import CallFailed, Status
from tritongen.client.redaction import cleanse
from tritongen.errors import AccessDenied, DeadlineExceeded, TritongenError

TOKEN, HEADER, OWN, SHORT = "t0k3n-of-nobody", "Basic h34d3r-of-nobody", "0wn-of-this-request", "qz7"
SECRETS = (TOKEN, HEADER, HEADER.split()[1], OWN)
ACCESS = {"token": TOKEN, "headers": {"x-key": HEADER, "x-short": SHORT}}


def all_that_is_known_of(error):
    """Everything that a log of errors would write of an error and of those that it came from."""
    seen, links = [], [error]
    while links:
        link = links.pop()
        if link is not None and link not in seen:
            seen.append(link)
            links += [link.__cause__, link.__context__]
    texts = [part for link in seen for part in (repr(link), str(link), repr(link.args), repr(vars(link)))]
    return "\n".join([*texts, *traceback.format_exception(error)])


def echo(status):
    def say(asked):
        said = f"no: {asked.headers['authorization']}, {asked.headers['x-key']}, {asked.headers.get('x-own')} and {asked.headers['x-short']}"
        return status, {}, (b'{"error": "%s"}' % said.encode()) if status != 500 else said.encode()

    return say


BROKEN = {
    "an echo of 401": echo(401),
    "an echo of 400": echo(400),
    "an echo of 503": echo(503),
    "an echo that is a page": echo(500),
    "a page that is cut in the midst of it": lambda asked: (500, {}, b"x" * 190 + asked.headers["authorization"].encode()),
    "no number as length": lambda asked: (200, {"Content-Length": "abc", "Connection": "close"}, b""),
    "a body that is cut": lambda asked: (200, {"Content-Length": "100", "Connection": "close"}, b"{}"),
    "a body that is no gzip": lambda asked: (200, {"Content-Encoding": "gzip"}, b"nothing"),
    "an answer that cannot be read": lambda asked: (200, {}, b'{"outputs": [{"name": "%s"}]}' % asked.headers["authorization"].encode()),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_no_error_shows_a_secret(triton, run, caplog, broken):
    async def use(client):
        await client.meta("m")
        triton.infer = broken
        with pytest.raises(TritongenError) as error:
            await client.infer("m", x=ROW, headers={"x-own": OWN}, deadline_s=10)
        return error.value

    with caplog.at_level(logging.DEBUG, "tritongen"):
        known = all_that_is_known_of(run(use, triton.url, retries=0, **ACCESS))
    assert [secret for secret in (*SECRETS, TOKEN[:9]) if secret in known + caplog.text] == []
    assert f"and {SHORT}" not in known


def test_what_is_said_beside_the_secret_stays(triton, run):
    async def use(client):
        triton.infer = echo(401)
        with pytest.raises(AccessDenied) as error:
            await client.infer("m", x=ROW, headers={"x-own": OWN})
        return str(error.value)

    assert run(use, triton.url, retries=0, **ACCESS).endswith("no: [not shown], [not shown], [not shown] and [not shown]")


def test_waiting_for_a_server_shows_none_either(triton, run):
    async def use(client):
        with pytest.raises(DeadlineExceeded) as error:
            await client.wait_ready("m", deadline_s=0.3)
        return error.value

    triton.ready = False
    assert TOKEN not in all_that_is_known_of(run(use, triton.url, **ACCESS))


def test_a_short_value_is_taken_out_as_a_word_only():
    failure = CallFailed(Status.FAILED, "500", "row of 1 arrows failed, x-row too")
    cleanse(failure, {"x-tenant": "row", "x-rows": "1"})
    assert failure.said == "[not shown] of 1 arrows failed, x-row too"


def test_errors_that_show_nothing_stay_where_they_were():
    failure = CallFailed(Status.FAILED, "500", "no")
    failure.__cause__ = ValueError("the reason")
    cleanse(failure, {"x-key": HEADER})
    assert isinstance(failure.__cause__, ValueError)


@pytest.mark.parametrize("kind", [tritongen.Client, tritongen.AsyncClient])
def test_no_repr_shows_a_secret(kind):
    client = kind("http://127.0.0.1:1", **ACCESS)
    shown = repr(client) + repr(client._core.access) + repr(client._core.about(0, tritongen.client.calls.ServerLive(), {"x-own": OWN}))
    assert [secret for secret in SECRETS if secret in shown] == []
