"""Many requests leave a client's process as it was: memory, descriptors and threads."""

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import contract
import pytest
from contract import rows

from tritongen import errors

pytestmark = pytest.mark.server
SOAK_S = 140
"""Four kinds of clients, so that all of it takes about ten minutes."""
SOAK_REQUESTS = 50_000
"""Of each kind of client, at least: two hundred thousand of all."""
MOST_GROWTH_KB = 20_000

GEVENT = """
import sys
from gevent import monkey
monkey.patch_all()
import grpc.experimental.gevent
grpc.experimental.gevent.init_gevent()
import time
import gevent
import numpy as np
from tritongen import Client

with Client(sys.argv[1]) as client:
    seconds = np.full((1, 1), 0.05, np.float32)
    client.infer("waiting", seconds=seconds * 0)
    ticks = []

    def tick():
        while True:
            ticks.append(time.monotonic())
            gevent.sleep(0.01)

    ticker = gevent.spawn(tick)
    jobs = [gevent.spawn(client.infer, "linear", x=np.zeros((3, 64), np.float32)) for _ in range(40)]

    def slow():
        begin = time.monotonic()
        client.infer("waiting", seconds=seconds * 6)
        return begin, time.monotonic()

    jobs.append(gevent.spawn(slow))
    gevent.joinall(jobs, raise_error=True)
    ticker.kill()
    assert all(job.value is not None for job in jobs)
    begin, end = jobs[-1].value
    # The loop ran on while the slow request was waited for.
    assert any(begin < tick < end for tick in ticks), (begin, end, ticks)
print("done")
"""


def usage() -> tuple[int, int]:
    """Open descriptors, and resident memory in kB."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    memory = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return len(list(Path("/proc/self/fd").iterdir())), int(memory.split()[1])


def hammer(client, requests: int, seconds: float = 0.0) -> int:
    """So many requests of all sorts, good and bad, and more until the time is over; each tenth has more rows than the model takes."""
    end, count = time.monotonic() + seconds, 0
    while count < requests or time.monotonic() < end:
        client.infer("linear", x=rows(1 + count // 10 % 20 if count % 10 == 0 else 1))
        count += 1
        if count % 50 == 0:
            list(client.infer_many("linear", [{"x": rows(2)}] * 8, window=4))
            with pytest.raises(errors.InvalidInput):
                client.infer("linear", x=rows(0))
            with pytest.raises(errors.ModelNotFound):
                client.infer("nothing", x=1)
    return count


def watch(kind: str, url: str, requests: int, seconds: float = 0.0) -> None:
    with contract.make_client(kind, url) as client:
        hammer(client, min(requests // 4, 500))
        files, memory = usage()
        hammer(client, requests, seconds)
        files_now, memory_now = usage()
    assert files_now <= files + 2
    assert memory_now <= memory + MOST_GROWTH_KB


def test_some_hundred_requests_leave_nothing_behind(kind, url):
    watch(kind, url, 300)


def test_clients_that_are_closed_leave_nothing_behind(kind, url):
    def use():
        with contract.make_client(kind, url) as client:
            client.infer("linear", x=rows(1))

    for _ in range(3):
        use()
    files, _ = usage()
    for _ in range(10):
        use()
    time.sleep(1)  # gRPC looks for news of a connection for up to 0.2 s
    assert usage()[0] <= files + 3


@pytest.mark.parametrize("protocol", ["grpc_url", "http_url"])
def test_greenlets_share_a_client(server, tmp_path, protocol):
    script = tmp_path / "greenlets.py"
    script.write_text(GEVENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run([sys.executable, script, getattr(server, protocol)], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout


@pytest.mark.soak
def test_many_thousand_requests_leave_nothing_behind(kind, url):
    watch(kind, url, SOAK_REQUESTS, SOAK_S)
