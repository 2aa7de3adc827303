"""How late a call of each client ends, beyond its deadline, when its server does not answer: the promise is 50 ms.

    python benchmarks/deadlines.py [--rounds 20] [--deadline 0.3]

The server is the embedded Triton behind a proxy, and is really stopped, cut off or kept busy. Prints the median and the worst of all rounds, in ms, of
calls that end with DeadlineExceeded; of those whose server is gone, how long the error takes in all.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/server"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/contracts/client"))
import contract
import models
from proxy import Proxy

from tritongen import errors

ROW = np.ones((1, 64), np.float32)


def late(call: Callable[[], object], deadline_s: float, expected: type[Exception]) -> float:
    """Milliseconds that the call took beyond its deadline."""
    start = time.perf_counter()
    try:
        call()
    except expected:
        return (time.perf_counter() - start - deadline_s) * 1000
    raise AssertionError(f"no {expected.__name__}")


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """The server stands still."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def measure(kind: str, repository: Path, rounds: int, deadline_s: float) -> dict[str, list[float]]:
    """Milliseconds beyond the deadline, of each fault."""
    found: dict[str, list[float]] = {}
    protocol = kind.split("-")[0]

    def repeat(fault: str, call: Callable[[], object], expected: type[Exception] = errors.DeadlineExceeded, deadline: float = deadline_s) -> None:
        found[fault] = [late(call, deadline, expected) for _ in range(rounds)]

    with contract.serve(repository) as server, socket.create_server(("127.0.0.1", 0)) as hole:
        url = server.grpc_url if protocol == "grpc" else server.http_url
        with contract.make_client(kind, url) as client:
            client.infer("linear", x=ROW)
            client.meta("slow")
            with contract.Gate(repository / "slow"):
                repeat("a slow model", lambda: client.infer("slow", seconds=contract.UNTIL_OPENED, deadline_s=deadline_s))
            with stopped(server.pid):
                repeat("a server that stands still", lambda: client.infer("linear", x=ROW, deadline_s=deadline_s))
        with contract.make_client(kind, f"{protocol}://127.0.0.1:{hole.getsockname()[1]}") as client:
            repeat("a port that takes connections and never answers", lambda: client.infer("linear", x=ROW, deadline_s=deadline_s))
        proxy = Proxy(int(url.rsplit(":", 1)[1]))
        with contextlib.closing(proxy), contract.make_client(kind, f"{protocol}://127.0.0.1:{proxy.port}") as client:
            client.infer("linear", x=ROW)
            proxy.swallow = True
            repeat("a connection that is half open", lambda: client.infer("linear", x=ROW, deadline_s=deadline_s))
    with contract.make_client(kind, url, retries=0) as client:
        repeat("a server that is gone (in all)", lambda: client.infer("linear", x=ROW, deadline_s=60), errors.ConnectionFailed, 0.0)
    return found


def main() -> None:
    """Prints one line for each fault and client."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--deadline", type=float, default=0.3, metavar="SECONDS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        models.put(repository, "linear", models.linear(), models.LINEAR)
        contract.python_model(repository, "slow", contract.SLOW, "seconds FP32 [1]", "slept FP32 [1]", batch=1)
        for kind in contract.KINDS:
            for fault, values in measure(kind, repository, options.rounds, options.deadline).items():
                print(f"{kind:<9} {fault:<48} median {statistics.median(values):6.1f} ms  worst {max(values):6.1f} ms")


if __name__ == "__main__":
    main()
