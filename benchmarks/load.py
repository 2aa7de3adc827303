"""Whether `tritongen load` reports what happened, and what that costs.

Truth: a server of known times (tests/known_server.py) writes down when each request arrived and was answered. For each rate, p50, p99 and p99.9 as reported,
as the log gives them, and as the schedule gives them for one worker; then the same with a pause of two seconds. Over gRPC the log is written before grpc's own
server sends the answer, which is in the difference. Cost: CPU of a sender a request, as fast as the server answers, with 16 under way; two processes against
one, which says something only where the server is not the bottleneck and there are cores for all three; a sample in the recorder.

    python benchmarks/load.py [--requests 10000] [--rates 50,200,500] [--protocols http,grpc] [--seconds 5] [--rounds 3]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import truth
from known_server import MODEL, known_server

from tritongen.load.engine import Machines
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult
from tritongen.load.run import run_load

SERVICE_S = 0.001
PAUSE = (5.0, 2.0)
SAMPLES = 100_000


def show(what: str, found: truth.Truth) -> None:
    """Reported, logged and simulated percentiles of one run."""
    print(f"{what}: {len(found.logged)} requests, {found.result.counts}{''.join(f'; INVALID: {reason}' for reason in found.result.invalid)}")
    for percent in (50, 99, 99.9):
        reported, logged, simulated = found.reported_ms(percent), found.logged_ms(percent), found.simulated_ms(percent)
        off = f"{(reported - logged) * 1000:+.0f} us, ratio {reported / logged:.4f}"
        print(f"  p{percent:<5g} reported {reported:9.3f} ms  log {logged:9.3f} ms ({off})  schedule {simulated:9.3f} ms (ratio {reported / simulated:.4f})")


def fastest(protocol: str, processes: int, seconds: float) -> LoadResult:
    """A closed loop of 16 on a server that answers at once."""
    with tempfile.TemporaryDirectory() as folder, known_server(Path(folder), service_s=0.0) as server:
        return run_load(LoadPlan((ModelLoad(MODEL),), server.urls[protocol], users=16, seconds=seconds, pool=4), machines=Machines(processes))


def cost(protocol: str, seconds: float, rounds: int) -> None:
    """CPU a request of one sender, and two senders against one, taking turns."""
    pairs = [(fastest(protocol, 1, seconds), fastest(protocol, 2, seconds)) for _ in range(rounds)]
    for count, results in ((1, [one for one, _ in pairs]), (2, [two for _, two in pairs])):
        cpu = [sum(sender.cpu_s for sender in result.senders) / sum(result.counts.values()) * 1e6 for result in results]
        print(f"{protocol}, {count} sending, 16 under way: {spread([result.rate for result in results])} requests/s, {spread(cpu)} us CPU a request")
    print(f"{protocol}, two processes against one: {spread([two.rate / one.rate for one, two in pairs], 2)} x the requests/s")


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median, and the extremes."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def recorder_us() -> float:
    """Microseconds of a sample."""
    recorder, key = Recorder(), Key(MODEL, "grpc", 0, "ok")
    start = time.perf_counter()
    for number in range(SAMPLES):
        recorder.add(key, number / 1000, 0.001 + number * 1e-7, 0.00005)
    return (time.perf_counter() - start) / SAMPLES * 1e6


def main() -> None:
    """Measure everything once."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=10_000, help="at each rate")
    parser.add_argument("--rates", default="50,200,500")
    parser.add_argument("--protocols", default="http,grpc")
    parser.add_argument("--seconds", type=float, default=5, help="of each run that is as fast as it can be")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"a sample in the recorder: {spread([recorder_us() for _ in range(arguments.rounds)], 2)} us")
    for protocol in arguments.protocols.split(","):
        for rate in map(float, arguments.rates.split(",")):
            show(f"{protocol} at {rate:g}/s", truth.run(protocol, rate, arguments.requests / rate, service_s=SERVICE_S))
        show(f"{protocol} at 200/s with a pause of {PAUSE[1]:g} s", truth.run(protocol, 200, 30, service_s=SERVICE_S, stalls=[PAUSE]))
        cost(protocol, arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
