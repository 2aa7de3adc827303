"""The clients against servers with TLS: whom they trust, how they show who they are, and what they say where either fails."""

import asyncio

import certificates
import pytest
import tls_servers

import tritongen
from tritongen.client import Tls
from tritongen.errors import ConnectionFailed

DEADLINE_S = 10.0


def ask(url, kind, tls):
    """What the server says it is, through a client of this kind."""
    if kind == "blocking":
        with tritongen.Client(url, tls=tls, deadline_s=DEADLINE_S, retries=0) as client:
            return client.metadata()["name"]

    async def waiting():
        async with tritongen.AsyncClient(url, tls=tls, deadline_s=DEADLINE_S, retries=0) as client:
            return (await client.metadata())["name"]

    return asyncio.run(waiting())


@pytest.fixture(params=["grpc", "http"])
def protocol(request):
    return request.param


@pytest.fixture(params=["blocking", "asyncio"])
def kind(request):
    return request.param


@pytest.fixture
def own(tmp_path):
    """Files with the certificate of a client, and its key."""
    (tmp_path / "cert").write_text(certificates.CERT)
    (tmp_path / "key").write_text(certificates.KEY)
    return {"cert": tmp_path / "cert", "key": tmp_path / "key"}


def test_a_server_that_is_trusted_answers_and_another_one_does_not(protocol, kind):
    with tls_servers.serve(protocol) as url:
        assert ask(url, kind, Tls(ca=tls_servers.LOCALHOST)) == tls_servers.NAME
        with pytest.raises(ConnectionFailed) as error:
            ask(url, kind, None)
    assert "trust its certificate" in error.value.hint
    assert not error.value.sent


def test_a_server_that_wants_a_certificate_gets_it(protocol, kind, own):
    with tls_servers.serve(protocol, mutual=True) as url:
        assert ask(url, kind, Tls(ca=tls_servers.LOCALHOST, **own)) == tls_servers.NAME
        with pytest.raises(ConnectionFailed) as error:
            ask(url, kind, Tls(ca=tls_servers.LOCALHOST))
    assert "(and it ours)" in error.value.hint


def test_plain_requests_to_a_server_with_tls_are_told_so(protocol, kind):
    with tls_servers.serve(protocol) as url, pytest.raises(ConnectionFailed) as error:
        ask(url.replace("s://", "://"), kind, None)
    assert "for another protocol" in error.value.hint or "port" in error.value.hint
