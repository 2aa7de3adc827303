"""Whether `tritongen load` reports what happened, and what that costs.

Truth: a server of known times (tests/known_server.py) writes down when each request arrived and when its answer was ready to be written. For each rate, p50,
p99 and p99.9 as reported, as the log gives them, and as the schedule gives them for one worker; then the same with a pause of two seconds. On a machine that
does other things, run it with `chrt -f 10`: else it measures how long these processes wait for a core.

Cost: CPU of a sender a request, as fast as the server answers, with 16 under way. How many requests two processes get out of a second of CPU each, against one
process at the same rate: how much more two send where each has a core, as long as nothing else that they share is the limit. Where there are cores for it
(`ROOMY`), requests a second of one and of two processes as fast as they can, with 16 under way in each, at a server of several processes. First, a sample in
the recorder, and a report of half a second.

    python benchmarks/load.py [--requests 10000] [--rates 50,200,500] [--protocols http,grpc] [--seconds 5] [--rounds 3]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import truth
from known_server import MODEL, known_server

from tritongen.load.arrivals import Stage
from tritongen.load.engine import Machines
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult
from tritongen.load.run import run_load

SERVICE_S = 0.001
PAUSE = (5.0, 2.0)
STEADY = 1000.0
SAMPLES = 100_000
REPORTS = 200
ROOMY = 12
"""Cores from which on two senders, what drives them, and SERVERS processes that answer have one each."""
SERVERS = 8


def show(what: str, found: truth.Truth) -> None:
    """Reported, logged and simulated percentiles of one run."""
    print(f"{what}: {len(found.logged)} requests, {found.result.counts}{''.join(f'; INVALID: {reason}' for reason in found.result.invalid)}")
    for percent in (50, 99, 99.9):
        reported, logged, simulated = found.reported_ms(percent), found.logged_ms(percent), found.simulated_ms(percent)
        off = f"{(reported - logged) * 1000:+.0f} us, ratio {reported / logged:.4f}"
        print(f"  p{percent:<5g} reported {reported:9.3f} ms  log {logged:9.3f} ms ({off})  schedule {simulated:9.3f} ms (ratio {reported / simulated:.4f})")


def fastest(protocol: str, seconds: float) -> LoadResult:
    """A closed loop of 16 on a server that answers at once."""
    return measured(LoadPlan((ModelLoad(MODEL),), protocol, users=16, seconds=seconds, pool=4), 1)


def at_once(protocol: str, seconds: float, processes: int) -> LoadResult:
    """A closed loop of 16 for each process on a server that is not one process."""
    return measured(LoadPlan((ModelLoad(MODEL),), protocol, users=16 * processes, seconds=seconds, pool=4), processes, SERVERS)


def steady(protocol: str, seconds: float, processes: int) -> LoadResult:
    """An open loop that every process has the same part in, however many there are, and that no core is full with."""
    rate = STEADY * processes
    return measured(LoadPlan((ModelLoad(MODEL),), protocol, stages=(Stage(seconds, rate, rate, "steady"),), arrivals="constant", pool=4), processes)


def measured(plan: LoadPlan, processes: int, servers: int = 1) -> LoadResult:
    """The plan, whose url is a protocol, on a server that answers at once."""
    with tempfile.TemporaryDirectory() as folder, known_server(Path(folder), service_s=0.0, processes=servers) as server:
        return run_load(dataclasses.replace(plan, url=server.urls[plan.url]), machines=Machines(processes))


def cost(protocol: str, seconds: float, rounds: int) -> None:
    """CPU a request at the highest rate, and of one and two processes that send the same each, taking turns."""
    results = [(fastest(protocol, seconds), steady(protocol, seconds, 1), steady(protocol, seconds, 2)) for _ in range(rounds)]
    highest, one, two = ([cpu_us(found[index]) for found in results] for index in range(3))
    print(f"{protocol}, 16 under way: {spread([found[0].rate for found in results])} requests/s, {spread(highest)} us CPU a request")
    print(f"{protocol}, {STEADY:g}/s from each process: {spread(one)} us CPU a request from one, {spread(two)} from two")
    print(f"{protocol}, two processes with a core each against one: {spread([2 * first / second for first, second in zip(one, two, strict=True)], 2)} x")
    if (os.cpu_count() or 1) >= ROOMY:
        rates = [(at_once(protocol, seconds, 1).rate, at_once(protocol, seconds, 2).rate) for _ in range(rounds)]
        alone, both = spread([first for first, _ in rates]), spread([second for _, second in rates])
        print(f"{protocol}, as fast as they can: {alone} requests/s from one process, {both} from two: {spread([two / one for one, two in rates], 2)} x")


def cpu_us(result: LoadResult) -> float:
    """Microseconds of the senders' CPU for a request."""
    return sum(sender.cpu_s for sender in result.senders) / sum(result.counts.values()) * 1e6


def spread(values: Sequence[float], digits: int = 0) -> str:
    """The median, and the extremes."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def recorder_us() -> float:
    """Microseconds of a sample."""
    recorder, key = Recorder(), Key(MODEL, "grpc", 0, "ok")
    start = time.perf_counter()
    for number in range(SAMPLES):
        recorder.add(key, number / 1000, 0.001 + number * 1e-7, 0.00005, unread_s=0.00005)
    return (time.perf_counter() - start) / SAMPLES * 1e6


def report_us() -> float:
    """Microseconds to write, read and add what a sender reports of half a second with 250 requests."""
    recorder, key, whole = Recorder(), Key(MODEL, "grpc", 0, "ok"), Recorder()
    for number in range(250):
        recorder.add(key, number / 500, 0.001 + number * 7e-6, 0.00005, unread_s=0.00005 + number * 1e-6)
    start = time.perf_counter()
    for _ in range(REPORTS):
        whole.merge(Recorder.from_json(recorder.to_json()))
    return (time.perf_counter() - start) / REPORTS * 1e6


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
    print(f"a report of 250 requests, written, read and added: {spread([report_us() for _ in range(arguments.rounds)])} us")
    for protocol in arguments.protocols.split(","):
        for rate in map(float, arguments.rates.split(",")):
            show(f"{protocol} at {rate:g}/s", truth.run(protocol, rate, arguments.requests / rate, service_s=SERVICE_S))
        show(f"{protocol} at 200/s with a pause of {PAUSE[1]:g} s", truth.run(protocol, 200, 30, service_s=SERVICE_S, stalls=[PAUSE]))
        cost(protocol, arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
