"""One load test from its plan to its result: Locust in a child process, the server's own counters before and after."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import math
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from tritongen.client import Client
from tritongen.client.endpoint import Access
from tritongen.client.requests import array_bytes
from tritongen.diagnostics import Diagnostic
from tritongen.errors import EnvironmentProblem, InferenceError, InputError, MissingExtra
from tritongen.load.connections import allow_connections
from tritongen.load.engine import END_S, HERE, NO_ACCESS, Machines, end, last_words, locust
from tritongen.load.follow import Follower
from tritongen.load.letting_in import for_client
from tritongen.load.limits import ModelFacts
from tritongen.load.payloads import check_plain_requests, make_pool
from tritongen.load.plan import LoadPlan, beyond
from tritongen.load.recorder import Recorder
from tritongen.load.result import LoadResult, SenderUse, Setup
from tritongen.load.unsent import unsent
from tritongen.load.watch import ServerWatch
from tritongen.patience import Patience

_POLL_S = 0.1
_PATIENCE = 4.0
"""How much longer a sender may take to prepare than this process, beside others and on a busy machine."""
_START_S = 30.0
"""Seconds for processes to start, beside what they wait for and prepare."""


@dataclass
class Progress:
    """What is known while a run goes on.

    Attributes:
        elapsed_s: seconds since the first request was due; below 0 before.
        recorder: what was measured so far.
        latest: what was measured in the last half second or so.
        under_way: requests without an answer.
        news: what happened to workers since the last time, in sentences.
    """

    elapsed_s: float
    recorder: Recorder
    latest: Recorder
    under_way: int
    news: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Limits:
    """Seconds until the run must have begun, and until it must be over, from its beginning."""

    start_s: float
    end_s: float


def run_load(
    plan: LoadPlan,
    *,
    machines: Machines = HERE,
    access: Access = NO_ACCESS,
    metrics_url: str = "",
    tool_version: str = "",
    progress: Callable[[Progress], None] = lambda progress: None,
) -> LoadResult:
    """Run a load test and return what it found; on Ctrl-C what was found until then.

    Args:
        plan: what to do.
        machines: where it is sent from.
        access: what requests carry to be let in; workers on other machines have their own.
        metrics_url: the server's metrics page; by default port 8002 of its host.
        tool_version: tritongen's own version, for the result and for workers on other machines, which must have it too.
        progress: called several times a second.

    Raises MissingExtra without Locust, InputError for a request that cannot be made, InferenceError where the server or the model is not there, and
    EnvironmentProblem where the run cannot begin, also where a worker does not come.
    """
    if importlib.util.find_spec("locust") is None:
        raise MissingExtra("load", "load tests")
    with Client(plan.url, deadline_s=10, **for_client(access)) as client, tempfile.TemporaryDirectory(prefix="tritongen-load-") as name:
        folder = Path(name)
        # Senders prepare the same, some of them on slower machines.
        begin = time.perf_counter()
        facts, left_out = _prepared(client, plan, machines)
        limits = _Limits(machines.max_wait_s + _START_S + _PATIENCE * (time.perf_counter() - begin), plan.length_s + plan.deadline_s + END_S)
        (folder / "plan.json").write_text(plan.to_json(), encoding="utf-8")
        follower = Follower(folder / "reports.jsonl", machines.workers)
        follower.reports.touch()
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        watch, complete, lasted_s = ServerWatch(client, plan, metrics_url), True, None
        with locust(folder, machines.options(), machines.shares, tool_version, access) as process:
            try:
                _follow(process, follower, watch, limits, progress)
            except KeyboardInterrupt:
                with Patience() as patience:
                    complete, until_s = False, max(follower.elapsed_s, 0.0)
                    follower = _break_off(process, folder, patience)
                    lasted_s = min(until_s if (told := follower.lasted_s()) is None else told, plan.length_s)
                    end(process, patience.hurry)
            watch.finish(follower.elapsed_s)
        if complete and follower.start is None:
            raise _never_begun(process, follower, machines)
        _count_unsent(plan, follower, machines.shares, plan.length_s if lasted_s is None else lasted_s)
        trouble = (*follower.trouble, *follower.lost(), *(_ended_early(plan, follower) if complete else ()))
        return LoadResult(
            plan,
            follower.recorder,
            tuple(SenderUse(sender.name, sender.cpu_s, sender.wall_s) for sender in sorted(follower.senders.values(), key=lambda sender: sender.share)),
            watch.result(),
            {**({"tritongen": tool_version} if tool_version else {}), **_versions(client)},
            complete and not trouble,
            trouble,
            started,
            facts,
            lasted_s,
            Setup(machines.processes if not machines.workers else 0, machines.workers, watch.metrics_url),
            (*left_out, *watch.notes()),
        )


def _prepared(client: Client, plan: LoadPlan, machines: Machines) -> tuple[dict[str, ModelFacts], tuple[str, ...]]:
    """Make what senders will make, so that everything that is wrong is said at once and before the run.

    Returns what is known of it, by model, and what was asked for and is not sent, in sentences. Raises InputError.
    """
    found: dict[str, ModelFacts] = {}
    left_out: tuple[str, ...] = ()
    problems: list[Diagnostic] = []
    try:
        left_out = _left_out(plan)
        if not machines.workers:
            allow_connections(plan, math.ceil(plan.users / machines.processes))
    except InputError as error:
        problems += error.diagnostics
    for load in plan.models:
        try:
            meta = client.meta(load.model, load.version)
            check_plain_requests(meta)
            payloads = make_pool(plan, load, meta)
            size = sum(array_bytes(array) for arrays in payloads.requests for array in arrays.values())
            found[load.model] = ModelFacts(meta.max_batch_size, size / len(payloads.requests))
            left_out += payloads.left_out
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return found, left_out


def _versions(client: Client) -> Mapping[str, str]:
    """Versions of what takes part, and what machine this is."""
    found = {name: importlib.metadata.version(name) for name in ("locust", "grpcio")}
    found.update(python=platform.python_version(), platform=platform.platform(), cores=str(len(os.sched_getaffinity(0))))
    with contextlib.suppress(InferenceError):
        found["triton"] = str(client.metadata(deadline_s=2).get("version", "?"))
    return found


def _left_out(plan: LoadPlan) -> tuple[str, ...]:
    """What was asked for and not sent, in sentences."""
    if not (count := beyond(plan)):
        return ()
    return (f"{count} requests of the trace {plan.trace} lie beyond the {plan.length_s:g} s of the run, and were not sent: give a longer --duration",)


def _count_unsent(plan: LoadPlan, follower: Follower, shares: int, until_s: float) -> None:
    """What senders that made no last report had still to send was due, too."""
    for sender in follower.senders.values() if not plan.users else ():
        if sender.lasted_s is None:
            for model, stage, second, count in unsent(plan, sender.share, shares, sender.told, until_s):
                follower.recorder.miss(model, stage, second, count)


def _ended_early(plan: LoadPlan, follower: Follower) -> Iterator[str]:
    lasted_s = follower.lasted_s()
    if lasted_s is not None and lasted_s < plan.length_s:
        yield f"the run was stopped after {lasted_s:.1f} s of {plan.length_s:g} s"


def _follow(process: subprocess.Popen[bytes], follower: Follower, watch: ServerWatch, limits: _Limits, progress: Callable[[Progress], None]) -> None:
    """Read what the senders say until they are done, and look at the server at the right moments. What does not end in time is in the follower's trouble."""
    begin = time.monotonic()
    while True:
        ended = process.poll() is not None
        latest, news = follower.read()
        watch.look(follower.elapsed_s)
        under_way = sum(sender.under_way for sender in follower.senders.values())
        progress(Progress(follower.elapsed_s, follower.recorder, latest, under_way, tuple(news)))
        if ended or follower.over:
            return
        if follower.start is None and time.monotonic() - begin > limits.start_s:
            follower.trouble.append(follower.not_ready(limits.start_s))
            return
        if follower.elapsed_s > limits.end_s:
            follower.trouble.append("the run did not end in time")
            return
        time.sleep(watch.pause(follower.elapsed_s, _POLL_S))


def _break_off(process: subprocess.Popen[bytes], folder: Path, patience: Patience) -> Follower:
    """End a run early, with the last reports of its senders, unless people are in a hurry; all is read again, since a report may have been read in half."""
    (folder / "stop").touch()
    end, follower = time.monotonic() + END_S, Follower(folder / "reports.jsonl")
    while True:
        ended = process.poll() is not None
        follower.read()
        if ended or follower.over or follower.start is None or time.monotonic() > end or patience.hurry():
            return follower
        time.sleep(_POLL_S)


def _never_begun(process: subprocess.Popen[bytes], follower: Follower, machines: Machines) -> EnvironmentProblem:
    """Why there is no run."""
    said = last_words(follower.reports.parent)
    if follower.trouble:
        return EnvironmentProblem(f"the run did not begin: {'; '.join(follower.trouble)}", hint=f"Locust's last words were: {said}" if said else "")
    if "in use" in said or "bind" in said:
        return EnvironmentProblem(f"Locust cannot listen: {said}", hint="choose another port with --master-bind-port or --web-port, or end what has it")
    if machines.workers and follower.workers < machines.workers:
        port = machines.bind_port
        return EnvironmentProblem(
            f"{follower.workers} of {machines.workers} workers came within {machines.max_wait_s:g} s",
            hint=f"start each with `tritongen load --worker --master-host HOST --master-port {port}`, where HOST is this machine; port {port} must be open",
        )
    return EnvironmentProblem(f"Locust ended with status {process.returncode} before the run began: {said}")
