"""The search for the highest rate, on a queue that is computed."""

import dataclasses
import random

import pytest

from tritongen.errors import InputError
from tritongen.load.findmax import find_max
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.spec.traffic import Promises

CAPACITY = 200.0


def promising(**limits):
    return LoadPlan((ModelLoad("m", slo=Promises(limits)),), "grpc://h:1")


PLAN = promising(p99=50.0)


def queue(plan, *, most=1e9):
    """One server that takes 1/CAPACITY seconds for each request, in order."""
    stage = plan.stages[-1]
    source, recorder, free, now = random.Random(7), Recorder(), 0.0, 0.0
    while (now := now + source.expovariate(stage.rate)) < stage.seconds:
        free = max(free, now) + 1 / CAPACITY
        recorder.add(Key("m", "grpc", len(plan.stages) - 1, "ok"), now, free - now, 0.0001)
    use = SenderUse("here", stage.seconds if stage.rate > most else 0.1, stage.seconds)
    return LoadResult(plan, recorder, (use,))


def test_the_rate_that_is_found_keeps_the_promise_and_little_more_does_not():
    found = find_max(PLAN, first_rate=10, seconds=60, warmup_s=1, run=queue)
    assert 120 < found.rate < CAPACITY
    assert found.best.missed_slo() == ()
    above = dataclasses.replace(PLAN, stages=(dataclasses.replace(found.best.plan.stages[-1], rate=found.rate * 1.2, end_rate=found.rate * 1.2),))
    assert queue(above).missed_slo()
    assert not found.limited_by_generator


def test_a_start_above_the_limit_comes_down():
    assert find_max(PLAN, first_rate=3000, seconds=30, warmup_s=0, run=queue).rate == pytest.approx(175, rel=0.2)


def test_a_queue_that_grows_is_not_kept_although_the_whole_run_would_be():
    lax = promising(p99=2000.0)
    found = find_max(lax, first_rate=205, seconds=30, warmup_s=0, run=queue)
    assert found.rate < 205
    assert any("grows while the rate is held" in reason for probe in found.probes for reason in probe.reasons)


def test_a_machine_that_cannot_send_more_is_said():
    found = find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=lambda plan: queue(plan, most=60))
    assert found.rate == pytest.approx(58, rel=0.06)
    assert found.limited_by_generator


def test_without_a_promise_there_is_nothing_to_find():
    with pytest.raises(InputError, match="needs one"):
        find_max(promising(), first_rate=1, seconds=1, warmup_s=0, run=queue)
