"""One process that sends: its share of the schedule, at the scheduled instants, whatever became of earlier requests.

Run as `python -m tritongen.load.sender`. Its standard input is a line of JSON with `plan`, `share` and `shares`, and, when it has answered `{"ready": true}`, a
line with the instant of `time.perf_counter` to begin at. It writes a line of JSON for each half second to its standard output (see `Report`), and ends with the
run, or early when its standard input is closed: whoever started it ends the run so, also by dying.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritongen.client.aio import AsyncClient
from tritongen.client.calls import Infer
from tritongen.client.endpoint import Access, parse_url
from tritongen.client.redaction import redacted, secrets_of
from tritongen.errors import TritongenError
from tritongen.load.arrivals import Arrival, draws
from tritongen.load.clock import Timer
from tritongen.load.connections import allow_connections, most_connections
from tritongen.load.crew import HERE_VARIABLE
from tritongen.load.letting_in import for_client, given
from tritongen.load.payloads import make_pool
from tritongen.load.plan import LoadPlan, arrivals_of
from tritongen.load.recorder import Key, Recorder
from tritongen.load.unsent import due_between
from tritongen.load.wire import Outcome, Pool, open_pool

TICK_S = 0.5
_LOOK_S = 0.02
_LONGEST_LINE = 2**26
_GRACE_S = 0.5
_SPELL_S = 0.005
"""For how long requests that are due are sent before the loop may read answers again."""
_BEHIND_S = 1.0
"""A sender that has not caught up with its schedule for so long cannot make its rate."""


@dataclass
class Report:
    """What a sender says about the time since it last did.

    Attributes:
        recorder: requests that were answered in it.
        cpu_s: CPU seconds of the process in it.
        wall_s: its length.
        under_way: requests without an answer at its end.
        lasted_s: in the last report, for how long requests were sent, from the run's beginning; None in those before.
    """

    recorder: Recorder
    cpu_s: float
    wall_s: float
    under_way: int
    lasted_s: float | None

    def data(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"recorder": self.recorder.to_json(), "cpu_s": self.cpu_s, "wall_s": self.wall_s, "under_way": self.under_way, "lasted_s": self.lasted_s}


class Sender:
    """Sends one share of a plan."""

    def __init__(self, plan: LoadPlan, share: int, shares: int, access: Access) -> None:
        self.plan = plan
        self._access, self._secrets = access, secrets_of(access.headers)
        self.protocol = parse_url(plan.url).protocol
        self.start = math.inf
        self._share, self._shares = share, shares
        self._arrivals = arrivals_of(plan, share, shares)
        self._users = plan.users // shares + (share < plan.users % shares)
        self._recorder = Recorder()
        self._under_way: set[asyncio.Task[None]] = set()
        self._prepared: list[Iterator[Any]] = []
        self._pick = draws([load.part for load in plan.models], seed=plan.seed, share=share)
        self._most = most_connections(plan, self._users)
        self._broken_off_s: float | None = None
        self._reported_cpu, self._reported_wall = time.process_time(), time.perf_counter()

    async def run(self, orders: asyncio.StreamReader) -> None:
        """Prepare everything, wait for the start, send, and report until the last answer is there."""
        async with AsyncClient(self.plan.url, **for_client(self._access)) as client:
            metas = [await client.meta(load.model, load.version) for load in self.plan.models]
        allow_connections(self.plan, self._users)
        async with open_pool(parse_url(self.plan.url), self._access, limit=self._most) as pool:
            for load, meta in zip(self.plan.models, metas, strict=True):
                payloads = make_pool(self.plan, load, meta).requests
                inputs = (tuple((meta.inputs_by_name[name], array) for name, array in arrays.items()) for arrays in payloads)
                self._prepared.append(itertools.cycle([pool.prepare(Infer.of(load.model, load.version, one)) for one in inputs]))
            del payloads
            # A collection of garbage stops the loop for milliseconds; what there is now stays anyway, and a request leaves no cycles behind.
            gc.collect()
            gc.freeze()
            gc.disable()
            _say({"ready": True})
            instant = await orders.readline()
            if not instant:
                return
            self.start = float(instant)
            background = [asyncio.ensure_future(each) for each in (self._report(), self._watch_lag())]
            stopping = asyncio.ensure_future(orders.read())
            sending = asyncio.ensure_future(self._closed_loop(pool) if self.plan.users else self._open_loop(pool))
            await asyncio.wait([sending, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                self._broken_off_s = max(time.perf_counter() - self.start, 0.0)
            if sending.done() and self._under_way:
                answering = asyncio.ensure_future(asyncio.wait(set(self._under_way)))
                await asyncio.wait([stopping, answering], timeout=self.plan.deadline_s + _GRACE_S, return_when=asyncio.FIRST_COMPLETED)
                answering.cancel()
            tasks = [sending, stopping, *background, *self._under_way]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._emit(done=True)
            if sending.done() and not sending.cancelled():
                sending.result()

    async def _open_loop(self, pool: Pool) -> None:
        """Every arrival at its instant: the timer's own callback sends, so that nothing else has to be woken first.

        Where this machine cannot make the rate, it is sent what it can, and what was due meanwhile is counted.
        """
        timer, loop = Timer(), asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        upcoming = next(self._arrivals, None)
        behind_since: float | None = None

        def send_due() -> None:
            nonlocal upcoming, behind_since
            timer.clear()
            end = time.perf_counter() + _SPELL_S
            while upcoming is not None and (instant := self.start + upcoming.due_s) <= (now := time.perf_counter()):
                if now >= end:
                    behind_since = now if behind_since is None else behind_since
                    if now - behind_since > _BEHIND_S:
                        upcoming, behind_since = self._skip(upcoming, now - self.start), None
                    break
                model = self._pick()
                if len(self._under_way) >= self.plan.most_under_way:
                    self._miss(model, upcoming)
                else:
                    task = asyncio.ensure_future(self._send(pool, model, upcoming, instant))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                upcoming = next(self._arrivals, None)
            else:
                behind_since = None
            if upcoming is not None:
                timer.set(self.start + upcoming.due_s)
            elif not over.done():
                over.set_result(None)

        loop.add_reader(timer, send_due)
        try:
            send_due()
            await over
        finally:
            loop.remove_reader(timer)
            timer.close()

    def _skip(self, upcoming: Arrival, until_s: float) -> Arrival | None:
        """Count what was due until then as never sent; the next request after it."""
        if self.plan.arrivals == "trace":
            later: Arrival | None = upcoming
            while later is not None and later.due_s < until_s:
                self._miss(self._pick(), later)
                later = next(self._arrivals, None)
            return later
        for model, stage, second, count in due_between(self.plan, self._share, self._shares, upcoming.due_s, until_s):
            self._recorder.miss(model, stage, second, count)
        self._arrivals = arrivals_of(self.plan, self._share, self._shares, begin_s=until_s)
        return next(self._arrivals, None)

    async def _closed_loop(self, pool: Pool) -> None:
        end = self.start + self.plan.length_s

        async def user() -> None:
            while (now := time.perf_counter()) < end:
                stage = 1 if now - self.start >= self.plan.warmup_s else 0
                await self._send(pool, self._pick(), Arrival(now - self.start, stage), now)

        await asyncio.sleep(max(self.start - time.perf_counter(), 0))
        await asyncio.gather(*(user() for _ in range(self._users)))

    def _is_measured(self, stage: int) -> bool:
        return stage > 0 if self.plan.users else self.plan.stages[stage].measured

    def _miss(self, model: int, arrival: Arrival) -> None:
        if self._is_measured(arrival.stage):
            self._recorder.miss(self.plan.models[model].model, arrival.stage, arrival.due_s)

    async def _send(self, pool: Pool, model: int, arrival: Arrival, instant: float) -> None:
        prepared = next(self._prepared[model])
        sent = time.perf_counter()
        try:
            answer = await pool.send(prepared, max(instant + self.plan.deadline_s - sent, 0.001))
        except asyncio.CancelledError:
            self._record(model, arrival, Outcome.UNFINISHED, time.perf_counter() - instant, sent - instant, "it was under way when the run was broken off")
            raise
        latency_s = answer.received_s - instant
        outcome, error = answer.judged_within(latency_s, self.plan.deadline_s)
        self._record(model, arrival, outcome, latency_s, sent - instant, error, answer.unread_s)

    def _record(self, model: int, arrival: Arrival, outcome: Outcome, latency_s: float, late_s: float, error: str, unread_s: float | None = None) -> None:
        if self._is_measured(arrival.stage):
            key = Key(self.plan.models[model].model, self.protocol, arrival.stage, outcome.value)
            self._recorder.add(key, arrival.due_s, latency_s, late_s, redacted(error, self._secrets), unread_s)

    async def _watch_lag(self) -> None:
        """How late this process wakes up. asyncio's own timers are up to a millisecond late, which is little beside what makes a run invalid."""
        await asyncio.sleep(max(self.start + self.plan.begin_s - time.perf_counter(), 0))
        while (now := time.perf_counter()) < self.start + self.plan.length_s:
            await asyncio.sleep(_LOOK_S)
            self._recorder.lag.record(time.perf_counter() - now - _LOOK_S)

    async def _report(self) -> None:
        # From the start on: the time that is waited for it would make a sender look less busy than it is.
        await asyncio.sleep(max(self.start - time.perf_counter(), 0))
        self._reported_cpu, self._reported_wall = time.process_time(), time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            self._emit(done=False)

    def _emit(self, *, done: bool) -> None:
        """Write what came since the last report, with the CPU that it took: the last one is of less than a tick, in which much may have been sent."""
        cpu, wall = time.process_time(), time.perf_counter()
        recorder, self._recorder = self._recorder, Recorder()
        lasted_s = None if not done else self.plan.length_s if self._broken_off_s is None else self._broken_off_s
        report = Report(recorder, cpu - self._reported_cpu, wall - self._reported_wall, len(self._under_way), lasted_s)
        self._reported_cpu, self._reported_wall = cpu, wall
        _say(report.data())


def _say(data: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


async def work() -> int:
    """Run one sender as standard input says; what is wrong with the plan or the server is written as a line with `error`."""
    orders = asyncio.StreamReader(limit=_LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    order = await orders.readline()
    if not order:
        return 0
    job = json.loads(order)
    os.chdir(os.environ.get(HERE_VARIABLE, "."))
    try:
        await Sender(LoadPlan.from_json(job["plan"]), job["share"], job["shares"], given()).run(orders)
    except TritongenError as error:
        _say({"error": str(error)})
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(work()))
