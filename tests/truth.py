"""What a load test should have reported: from the log of a server of known times, from its schedule alone, and what was reported, side by side."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from known_server import MODEL, Stalls, finished, known_server

from tritongen.client.endpoint import parse_url
from tritongen.load.arrivals import ArrivalKind, Stage, schedule
from tritongen.load.engine import Machines
from tritongen.load.model_result import measure
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.result import LoadResult
from tritongen.load.run import Progress, run_load


def percentile(values: Sequence[float], percent: float) -> float:
    """The value of this rank, which is what a histogram gives too."""
    return sorted(values)[max(int(percent / 100 * len(values) + 0.5), 1) - 1]


def simulated(dues: Sequence[float], service_s: float, stalls: Stalls) -> list[float]:
    """Seconds from each due instant to the end of its request, with one worker, and stalls that count from the first of them."""
    free, latencies = 0.0, []
    for due in dues:
        free = dues[0] + finished(max(due, free) - dues[0], service_s, stalls)
        latencies.append(free - due)
    return latencies


@dataclass(frozen=True)
class Truth:
    """One run. Latencies are in seconds, of each request that was due.

    Attributes:
        result: what the load test reported.
        logged: from the instant at which each request was due to the end that the server wrote down.
        simulated: what they are with a network and a generator that take no time.
        seconds: from the instant at which the run began to its result.
        noise: round trips of something else that asked the same server at the same time for what takes no time; empty where nothing did.
    """

    result: LoadResult
    logged: Sequence[float]
    simulated: Sequence[float]
    seconds: float
    noise: Sequence[float] = ()

    def reported_ms(self, percent: float) -> float:
        """What the load test gives for a percentile, in milliseconds."""
        return measure(self.result.latencies(), f"p{percent:g}")

    def logged_ms(self, percent: float) -> float:
        """What the log gives."""
        return percentile(self.logged, percent) * 1000

    def noise_ms(self, percent: float) -> float:
        """What this machine added meanwhile."""
        return percentile(self.noise, percent) * 1000

    def simulated_ms(self, percent: float) -> float:
        """What the schedule gives."""
        return percentile(self.simulated, percent) * 1000


def believable(reported_ms: float, logged_ms: float, noise_ms: float) -> bool:
    """Whether a percentile can be what was reported where the log gives another: by half, or a millisecond, and what a busy machine adds on the way."""
    return 0.98 * logged_ms - 0.5 <= reported_ms <= logged_ms + max(1.0, 0.5 * logged_ms) + 3 * noise_ms


@contextlib.contextmanager
def round_trips(url: str, every_s: float = 0.02) -> Iterator[list[float]]:
    """Seconds that each answer of a server took that has nothing to do for it, asked for one after another while the block runs."""
    endpoint, found, over = parse_url(url), [], threading.Event()

    def ask() -> None:
        with socket.create_connection((endpoint.host, endpoint.port)) as connection:
            while not over.wait(every_s):
                begin = time.perf_counter()
                connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
                found.append(time.perf_counter() - begin)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def run(
    protocol: str,
    rate: float,
    seconds: float,
    *,
    service_s: float,
    stalls: Stalls = (),
    processes: int = 1,
    arrivals: ArrivalKind = "poisson",
    seed: int = 0,
    noise: bool = False,
) -> Truth:
    """A load test against a server of known times; `noise`: with round trips beside it."""
    starts: list[float] = []

    def watch(progress: Progress) -> None:
        if progress.elapsed_s > -1.0:
            starts.append(time.perf_counter() - progress.elapsed_s)

    stages = (Stage(seconds, rate, rate, "known"),)
    with tempfile.TemporaryDirectory() as folder, known_server(Path(folder), service_s=service_s, stalls=stalls) as server:
        plan = LoadPlan((ModelLoad(MODEL),), server.urls[protocol], stages=stages, arrivals=arrivals, seed=seed, pool=4, deadline_s=60)
        with round_trips(server.urls["http"]) if noise else contextlib.nullcontext([]) as trips:
            result = run_load(plan, machines=Machines(processes), progress=watch)
            end = time.perf_counter()
    # The nearest of many looks at the clock: each comes some microseconds after the instant that it is about.
    start = min(starts)
    dues = sorted(arrival.due_s for share in range(processes) for arrival in schedule(stages, arrivals, seed=seed, share=share, shares=processes))
    ends = [end for _, end in sorted(server.log)]
    return Truth(result, [finish - start - due for finish, due in zip(ends, dues, strict=True)], simulated(dues, service_s, stalls), end - start, trips)
