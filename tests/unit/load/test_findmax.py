"""The search for the highest rate, on a queue that is computed."""

import dataclasses
import itertools
import json
import random
from pathlib import Path

import load_results
import pytest
import schemas

from tritongen.errors import ConnectionFailed, EnvironmentProblem, InputError
from tritongen.load.findmax import Found, Probe, find_max
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult, SenderUse
from tritongen.report.load_search import described_effort, described_search, format_found, format_probe, found_json
from tritongen.spec.traffic import Promises

CAPACITY = 200.0
SCHEMA = Path(__file__).parents[3] / "docs/load_result.schema.json"


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
    for told in (found, dataclasses.replace(found, complete=False)):
        assert f"{found.lowest_broken:.1f} could not be judged, since this machine was too busy" in described_search(told)
        assert "The highest rate is not known." in described_search(told)


def test_a_machine_that_is_too_busy_for_any_rate_says_nothing_about_the_server():
    found = find_max(PLAN, first_rate=1, seconds=20, warmup_s=0, run=lambda plan: queue(plan, most=0))
    assert (found.rate, found.limited_by_generator) == (0, True)
    assert f"No rate could be judged, down to {min(probe.rate for probe in found.probes):g} requests/s: this machine was too busy at each." in format_found(
        found
    )


def test_without_a_promise_there_is_nothing_to_find():
    with pytest.raises(InputError, match="needs one"):
        find_max(promising(), first_rate=1, seconds=1, warmup_s=0, run=queue)


@pytest.mark.parametrize("limits", [{"mean": 200.0}, {"max": 2000.0}])
def test_a_queue_that_grows_is_seen_whatever_is_promised(limits):
    found = find_max(promising(**limits), first_rate=210, seconds=30, warmup_s=0, run=queue)
    assert any("p99 grows while the rate is held" in reason for reason in found.probes[0].reasons)
    assert found.rate < 210


def test_a_queue_that_grows_is_seen_where_only_errors_are_promised():
    plan = LoadPlan((ModelLoad("m", slo=Promises({}, 0.01)),), "grpc://h:1")
    found = find_max(plan, first_rate=250, seconds=30, warmup_s=0, run=queue)
    assert any("p99 grows while the rate is held" in reason for reason in found.probes[0].reasons)
    assert 0 < found.rate < 210


def test_requests_that_are_turned_away_do_not_keep_a_rate():
    def rejecting(plan):
        made = queue(plan)
        rate = plan.stages[-1].rate
        if rate > 40:
            for key in list(made.recorder.histograms):
                made.recorder.histograms[key._replace(outcome="rejected")] = made.recorder.histograms.pop(key)
        return made

    found = find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=rejecting)
    assert found.rate == pytest.approx(40, rel=0.06)
    assert "no request was answered well" in next(probe for probe in found.probes if probe.rate > 40).reasons[0]


def hiccups(*numbers):
    """The queue, with a sender that is late in the runs of these numbers."""
    runs = itertools.count(1)

    def run(plan):
        made = queue(plan)
        if next(runs) in numbers:
            for _ in range(made.recorder.late.count // 20):
                made.recorder.late.record(0.1)
        return made

    return run


def test_one_hiccup_of_the_sender_does_not_end_the_search():
    calm, disturbed = (find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=run) for run in (queue, hiccups(2)))
    assert disturbed.rate == calm.rate
    assert len(disturbed.probes) == len(calm.probes) + 1
    assert [probe.rate for probe in disturbed.probes[:3]] == [10, 20, 20]
    lasting = find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=hiccups(2, 3, 4))
    assert lasting.rate < 20.5


@pytest.mark.parametrize("between", [False, True])
def test_a_search_that_is_broken_off_claims_nothing_about_the_rate_it_broke_off_at(between):
    runs = itertools.count(1)

    def run(plan):
        if next(runs) < 3:
            return queue(plan)
        if between:
            raise KeyboardInterrupt
        return dataclasses.replace(queue(plan), complete=False)

    found = find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=run)
    assert (found.rate, found.complete, found.close, found.limited_by_generator) == (20, False, False, False)
    assert len(found.probes) == (2 if between else 3)
    assert between or found.probes[-1].reasons == ("it was broken off before its end",)
    text, data = format_found(found), json.loads(found_json(found))
    assert "The search was broken off after" in text
    assert "20.0 requests/s kept the SLO, no higher one was tried" in text
    assert "5 %" not in text
    assert (data["rate"], data["complete"], data["probes"][-1]["kept"]) == (20, False, between)


@pytest.mark.parametrize("error", [ConnectionFailed("grpc://h:1: Connection refused"), EnvironmentProblem("the run did not begin")], ids=type)
def test_a_server_that_is_gone_ends_the_search_with_what_was_found(error):
    runs = itertools.count(1)

    def run(plan):
        if next(runs) == 3:
            raise error
        return queue(plan)

    found = find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=run)
    assert (found.rate, found.complete, len(found.probes), found.best.target_rate) == (20, False, 2, pytest.approx(20, rel=0.2))
    assert f"The search ended after 2 runs, since the next could not begin ({error}): until then 20.0 requests/s kept the SLO" in format_found(found)
    dying = dataclasses.replace(found, probes=(*found.probes, Probe(40.0, load_results.make(), ("the server went away",), False)))
    assert "20.0 requests/s kept the SLO, no higher one was tried" in format_found(dying)
    assert schemas.accepts(json.loads(SCHEMA.read_text(encoding="utf-8")), data := json.loads(found_json(found)))
    assert (data["complete"], data["ended"]) == (False, str(error))
    with pytest.raises(type(error)):
        find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=failing(error))


def failing(error):
    def run(plan):
        raise error

    return run


@pytest.mark.parametrize(("seconds", "slow", "probes"), [(20, 1, [20, 20]), (20, 2, [20, 20]), (100, 1, [20, 28.28])], ids=["once", "twice", "enough"])
def test_a_rate_that_a_few_slow_answers_speak_against_is_tried_again(seconds, slow, probes):
    """At 20/s the p99 of 20 s stands on four requests beyond it, that of 100 s on twenty."""
    runs = itertools.count(1)

    def run(plan):
        made = queue(plan)
        if 2 <= next(runs) < 2 + slow:
            for _ in range(made.due // 50):
                made.recorder.add(Key("m", "grpc", 0, "ok"), 1.0, 0.2, 0.0)
        return made

    found = find_max(PLAN, first_rate=10, seconds=seconds, warmup_s=0, run=run)
    assert [probe.rate for probe in found.probes[1:3]] == [pytest.approx(rate, abs=20) if rate > 20 else rate for rate in probes]
    assert (found.rate > 20) == (slow == 1 and seconds == 20)


def test_what_is_broken_off_before_it_has_begun_found_nothing():
    def run(plan):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_max(PLAN, first_rate=10, seconds=20, warmup_s=0, run=run)


def test_a_search_that_ends_below_no_broken_rate_claims_no_closeness():
    end = Found(1e6, (Probe(1e6, load_results.make(), (), False),))
    assert "(no higher one was tried, 1 run)" in format_found(end)


def test_a_trace_has_a_rate_of_its_own_and_is_no_search():
    with pytest.raises(InputError, match="a trace has its own"):
        find_max(dataclasses.replace(PLAN, arrivals="trace", trace="t"), first_rate=10, seconds=1, warmup_s=0, run=queue)


def test_a_run_at_another_rate_is_not_kept():
    def halved(plan):
        made = queue(plan)
        stage = dataclasses.replace(plan.stages[-1], seconds=plan.stages[-1].seconds * 2)
        return dataclasses.replace(made, plan=dataclasses.replace(plan, stages=(stage,)))

    found = find_max(PLAN, first_rate=100, seconds=20, warmup_s=0, run=halved)
    assert found.rate < 10
    assert any("which is another rate" in reason for reason in found.probes[0].reasons)


def test_each_run_is_told_with_its_real_reasons():
    told = []
    find_max(promising(p99=2000.0), first_rate=205, seconds=30, warmup_s=0, run=queue, tell=lambda probe: told.append(format_probe(probe)))
    assert "p99 grows while the rate is held" in told[0]
    assert told[-1].endswith("kept") or "grows" in told[-1]


@pytest.mark.parametrize(
    ("silent_run", "words"),
    [(1, "at 40 requests/s nothing was due in 20 s: until then no rate had kept the SLO"), (5, "until then 160.0 requests/s kept the SLO, 320.0 did not")],
    ids=["the first", "a bisection"],
)
def test_a_rate_at_which_nothing_is_due_ends_the_search_with_words(silent_run, words):
    runs = itertools.count(1)
    found = find_max(PLAN, first_rate=40, seconds=20, warmup_s=0, run=lambda plan: LoadResult(plan, Recorder()) if next(runs) == silent_run else queue(plan))
    assert (len(found.probes), found.nothing_due, found.close) == (silent_run, True, False)
    text = format_found(found)
    assert words in text
    assert "The highest rate is not known; give a longer --duration." in text


def test_percentiles_of_a_run_that_stand_on_few_samples_are_marked_and_so_are_promises():
    plan = LoadPlan((ModelLoad("m", slo=Promises({"p99": 50.0}, 0.0)),), "grpc://h:1")
    told = []
    found = find_max(plan, first_rate=10, seconds=2, warmup_s=0, run=queue, tell=lambda probe: told.append(format_probe(probe)))
    assert all("p99 " in line and "* ms" in line for line in told)
    text = format_found(found)
    assert "NOTE: p99 is promised, and of" in text
    assert "NOTE: an error rate of 0.000% is promised, and even no error in" in text
    assert any("p99 is promised" in note for note in json.loads(found_json(found))["result"]["notes"])


def test_marks_are_explained_where_no_rate_was_kept():
    found = find_max(promising(p99=0.001), first_rate=10, seconds=2, warmup_s=0, run=queue)
    assert not found.rate
    assert format_found(found).endswith("* fewer than 10 samples lie beyond it, so that it differs from run to run by itself")


def test_a_run_without_answers_has_no_latency():
    assert "p50 -   p99 -   p99.9 - ms" in format_probe(Probe(5.0, LoadResult(PLAN, Recorder()), ("nothing",), False))


def test_how_long_it_takes_is_said_before_it_begins():
    assert described_effort(50, 30, 5).startswith("Searching from 50 requests/s on, in runs of 35 s: 4 min for 6 runs, and another run")
    assert "after 24 rates (14 min) it ends" in described_effort(50, 30, 5)
    assert "in runs of 1.5 s: 9 s for 6 runs" in described_effort(50, 1, 0.5)
