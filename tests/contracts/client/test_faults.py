"""Real faults: each ends in the right typed error, within its deadline plus a little, and a client outlives the server."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import contract
import models
import numpy as np
import pytest
from contract import rows
from proxy import Proxy

from tritongen import errors

pytestmark = pytest.mark.server

BUSY_S = 20.0
"""What a call may take beyond its deadline on a machine that is busy with other things; one that does not keep it takes a minute, or for ever."""


@pytest.fixture
def two_models(tmp_path):
    models.put(tmp_path / "repository", "linear", models.linear(), models.LINEAR)
    contract.python_model(tmp_path / "repository", "slow", contract.SLOW, "seconds FP32 [1]", "slept FP32 [1]", batch=1)
    return tmp_path / "repository"


def address(server, kind):
    return server.grpc_url if kind.startswith("grpc") else server.http_url


@contextlib.contextmanager
def within(deadline_s):
    start = time.monotonic()
    yield
    assert time.monotonic() - start < deadline_s + BUSY_S


@pytest.fixture
def proxied(server, kind):
    """A proxy in front of the contract's server, and its address."""
    proxy = Proxy(int(address(server, kind).rsplit(":", 1)[1]))
    yield proxy, f"{kind.split('-')[0]}://127.0.0.1:{proxy.port}"
    proxy.close()


def test_a_port_where_nothing_listens_fails_at_once(kind):
    with contract.make_client(kind, f"{kind.split('-')[0]}://127.0.0.1:1") as client, within(0), pytest.raises(errors.ConnectionFailed) as error:
        client.infer("linear", x=rows(1), deadline_s=60)
    assert not error.value.sent
    assert not isinstance(error.value, errors.NotTriton)


def test_a_connection_that_is_cut_in_the_middle_of_an_answer(proxied, kind):
    proxy, url = proxied
    with contract.make_client(kind, url) as client:
        assert client.infer("linear", x=rows(8))["y"].shape == (8, 16)
    with contract.make_client(kind, url) as client:
        client.meta("linear")
        proxy.cut_after = 300
        with within(0), pytest.raises(errors.ConnectionFailed) as error:
            client.infer("linear", x=rows(8), deadline_s=60)
        assert error.value.sent
        assert not isinstance(error.value, errors.NotTriton)
        proxy.cut_after = None
        assert client.infer("linear", x=rows(8), deadline_s=60, idempotent=True)["y"].shape == (8, 16)


def test_a_connection_that_is_cut_in_the_middle_of_a_request(proxied, kind):
    proxy, url = proxied
    x = np.ones((20_000, 64), np.float32)
    with contract.make_client(kind, url) as client:
        client.meta("wide")
        proxy.cut_request_after = 1_000_000
        with within(0), pytest.raises(errors.ConnectionFailed) as error:
            client.infer("wide", x=x, deadline_s=60)
        assert error.value.sent
        proxy.cut_request_after = None
        assert client.infer("wide", x=x, deadline_s=60, idempotent=True)["y"].shape == (20_000, 16)


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
def test_compressed_requests_are_smaller_and_the_answers_are_equal(proxied, kind, compression):
    proxy, url = proxied
    x = np.zeros((2_000, 64), np.float32)

    def ask(**options):
        with contract.make_client(kind, url, **options) as client:
            client.meta("wide")
            before = proxy.heard
            answer = client.infer("wide", x=x, deadline_s=60)["y"]
            return answer, proxy.heard - before

    (plain, size), (answer, compressed) = ask(), ask(compression=compression)
    assert np.array_equal(answer, plain)
    assert size > x.nbytes > 20 * compressed


def test_readiness_is_found_over_another_connection_where_the_first_one_hangs(proxied, kind):
    proxy, url = proxied
    proxy.swallow = True
    with contract.make_client(kind, url) as client, within(0):
        healing = threading.Timer(0.5, setattr, (proxy, "swallow", False))
        healing.start()
        client.wait_ready("linear", deadline_s=120)
        healing.join()


def test_a_kept_connection_that_was_closed_costs_no_request(proxied, kind):
    """Also where the event loop had no turn since."""
    proxy, url = proxied
    with contract.make_client(kind, url, retries=0) as client:
        client.infer("linear", x=rows(1))
        for _ in range(3):
            proxy.cut()
            if kind.startswith("grpc"):
                contract.eventually(proxy.is_noticed, "gRPC's own threads have seen it")
            time.sleep(0.1)
            assert client.infer("linear", x=rows(1))["y"].shape == (1, 16)


def test_a_connection_that_is_half_open_ends_with_the_deadline(proxied, kind):
    proxy, url = proxied
    with contract.make_client(kind, url) as client:
        client.meta("linear")
        proxy.swallow = True
        with within(0.4), pytest.raises(errors.DeadlineExceeded):
            client.infer("linear", x=rows(1), deadline_s=0.4)


def test_a_server_that_stands_still_ends_with_the_deadline_and_goes_on_afterwards(server, kind, url):
    with contract.make_client(kind, url) as client:
        client.infer("linear", x=rows(1))
        os.kill(server.pid, signal.SIGSTOP)
        while Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)
        try:
            with within(0.4), pytest.raises(errors.DeadlineExceeded):
                client.infer("linear", x=rows(1), deadline_s=0.4)
            with within(0.3):
                assert not client.ready(deadline_s=0.3)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        client.wait_ready(deadline_s=60)
        assert client.infer("linear", x=rows(1), deadline_s=60)["y"].shape == (1, 16)


def test_a_server_that_is_killed_under_a_request_and_started_again(two_models, kind):
    with contract.serve(two_models) as server:
        url = address(server, kind)
        client = contract.make_client(kind, url)
        client.infer("linear", x=rows(1))
        client.meta("slow")
        gate = contract.Gate(two_models / "slow")
        (two_models / "slow/closed").touch()
        killer = threading.Thread(target=lambda: (gate.wait_begun(), os.kill(server.pid, signal.SIGKILL)))
        killer.start()
        with within(BUSY_S), pytest.raises(errors.ConnectionFailed) as error:
            client.infer("slow", seconds=contract.UNTIL_OPENED, deadline_s=60)
        assert error.value.sent
        killer.join()
        with within(0), pytest.raises(errors.ConnectionFailed):
            client.infer("linear", x=rows(1), deadline_s=60)
    ports = {"grpc_port": 0, "http_port": 0, "metrics_port": 0} | {f"{kind.split('-')[0]}_port": int(url.rsplit(":", 1)[1])}
    with contract.serve(two_models, **ports), client:  # closed first: Triton waits for open HTTP connections before it stops
        client.wait_ready(deadline_s=60)
        assert client.infer("linear", x=rows(1), deadline_s=60)["y"].shape == (1, 16)


def test_a_request_beyond_what_grpc_carries_is_refused_early(server):
    """Nothing of it is allocated: the array repeats one number."""
    import tritongen

    huge = np.broadcast_to(np.float32(0), (8_500_000, 64))
    with tritongen.Client(server.grpc_url) as client, within(0), pytest.raises(errors.InvalidInput, match="the limit is 2147418112"):
        client.infer("wide", x=huge)
    with tritongen.Client(server.grpc_url) as client, within(0), pytest.raises(errors.InvalidInput, match="the limit is 2147418112"):
        next(client.stream("wide", x=huge))
    with tritongen.Client(server.grpc_url) as client, within(0), pytest.raises(errors.InvalidInput, match="the limit is 2147418112"):
        client.load("wide", config="{}", files={"1/model.onnx": bytes(2**31)})
