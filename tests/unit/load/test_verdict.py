"""How runs are judged: what got no good answer counts, and what says nothing about the server is told apart."""

import dataclasses
import math

import load_results
import pytest

from tritongen.load.histogram import Histogram, Samples
from tritongen.load.limits import Measured, ModelFacts, what_limits
from tritongen.load.plan import LoadPlan, ModelLoad, staged
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult
from tritongen.load.serverside import ServerSide
from tritongen.load.verdict import judged
from tritongen.load.wire import Answer, Outcome
from tritongen.report.load import format_load
from tritongen.report.load_html import load_page
from tritongen.spec.traffic import Step, parse_slo


def histogram(*latencies_ms):
    made = Histogram()
    for latency in latencies_ms:
        made.record(latency / 1000)
    return made


@pytest.mark.parametrize(
    ("measure", "unanswered", "expected"),
    [
        ("p99", 0, 99),
        ("p99", 1, 100),
        ("p99", 2, math.inf),
        ("p50", 90, 95),
        ("p50", 101, math.inf),
        ("max", 0, 100),
        ("max", 1, math.inf),
        ("mean", 0, 50.5),
        ("mean", 100, (50.5 + 10_000) / 2),
    ],
)
def test_what_got_no_good_answer_is_slower_than_all_the_rest(measure, unanswered, expected):
    assert judged(histogram(*range(1, 101)), unanswered, measure, 10.0) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("measure", ["p50", "max", "mean"])
def test_nothing_is_judged_as_nothing(measure):
    assert judged(Histogram(), 0, measure, 10.0) == 0


def test_samples_beyond_a_value_are_counted():
    samples = Samples.of(histogram(1, 4.9, 5.2, 80))
    assert [samples.beyond(value) for value in (0, 5000, 79_000, 81_000)] == [4, 2, 1, 0]


def run(outcomes, *, slo="", late_s=0.0, late=0, seconds=10, warmup_s=0.0, message="why", untold=0):
    """A run of ten requests a second; `outcomes` gives that of each instant, or None for one that was never sent. Of the first `untold` ones the system does
    not tell when they were answered.
    """
    plan = LoadPlan((ModelLoad("m", slo=parse_slo(slo) if slo else parse_slo("p99=1s")),), "http://h:1", stages=staged([Step(10, 10, seconds)], warmup_s))
    recorder, stage = Recorder(), len(plan.stages) - 1
    for index in range(seconds * 10):
        due, outcome = warmup_s + index / 10, outcomes(index / 10)
        if outcome is None:
            recorder.miss("m", stage, due)
        else:
            said = "" if outcome == "ok" else message
            recorder.add(Key("m", "http", stage, outcome), due, 0.005, late_s if index < late else 0.0, said, None if index < untold else 0.0001)
    return LoadResult(plan, recorder)


def test_a_promise_without_errors_in_it_is_broken_by_them():
    rejecting = run(lambda due: "ok" if due % 1 < 0.05 else "rejected", slo="p99=20ms")
    assert rejecting.missed_slo() == ("p99: 90 of 100 requests got no good answer, and 20 ms were promised",)
    assert run(lambda due: "rejected" if due == 5 else "ok", slo="p99=20ms").missed_slo() == ()


def test_what_was_under_way_when_a_run_was_broken_off_is_judged_as_far_as_it_had_waited():
    """The last ten had waited for 5 ms."""
    result = run(lambda due: "ok" if due < 9 else "unfinished", slo="p99=20ms,mean=20ms,max=20ms,error_rate=0.1%")
    assert (result.missed_slo(), result.error_rate) == ((), 0)
    tight = run(lambda due: "ok" if due < 9 else "unfinished", slo="max=4.9ms")
    assert tight.missed_slo() == ("max: 10 of 100 requests got no good answer, and 4.9 ms were promised",)
    nothing = run(lambda due: "unfinished", slo="p99=20ms")
    assert nothing.missed_slo() == ("p99: no request was due, or was given time to be answered",)


@pytest.mark.parametrize("outcome", ["connection", "deadline", "hollow", "failed", "rejected"])
def test_a_run_in_which_nothing_was_answered_is_not_valid_without_a_promise_too(outcome):
    result = run(lambda due: outcome)
    assert result.invalid == (f"no request was answered well in the measured time (100 {outcome})",)


@pytest.mark.parametrize("warmup_s", [0.0, 2.5])
def test_a_server_that_goes_away_is_told_with_the_moment(warmup_s):
    result = run(lambda due: "ok" if due < 4 else "connection", warmup_s=warmup_s)
    assert result.invalid == ("no good answer came after 3.9 s of the 10 s measured: the server went away, or stands still since",)
    assert "no good answer came after 3.9 s" in format_load(result)


def test_a_server_that_is_not_even_asked_any_more_went_away_too():
    assert "no good answer came after 3.9 s" in run(lambda due: "ok" if due < 4 else None).invalid[0]


@pytest.mark.parametrize(
    "outcomes",
    [
        lambda due: "ok" if due < 9.5 else "deadline",
        lambda due: "connection" if due < 6 else "ok",
        lambda due: "ok" if due in (3.0, 7.0) else "rejected",
        lambda due: "ok",
    ],
    ids=["a pause at the end", "a late start", "one in fifty answered", "all answered"],
)
def test_a_server_that_answers_has_not_gone_away(outcomes):
    assert not any("went away" in reason for reason in run(outcomes).invalid)


def test_one_hiccup_of_the_sender_is_no_bottleneck_and_more_are():
    assert run(lambda due: "ok", late=4, late_s=0.2).invalid == ()
    (reason,) = run(lambda due: "ok", late=5, late_s=0.2).invalid
    assert reason.startswith("5 of 100 requests were sent more than 5 ms late, up to 200")
    assert run(lambda due: "ok", late=5, late_s=0.2).overburdened == (reason,)


def test_a_reason_is_said_once_and_the_split_with_it():
    result = LoadResult(**{**vars(run(lambda due: "ok", late=5, late_s=0.2)), "servers": {"m": load_results.SERVER}})
    text, page = format_load(result), load_page(result)
    for written in (text, page):
        assert written.count("this machine is too busy") == 1
        assert written.count("are spent in the queue") == 1


@pytest.mark.parametrize(
    ("slo", "notes"),
    [
        ("p99=20ms", ["p99 is promised, and of 100 requests fewer than 10 lie beyond it, so that it differs from run to run by itself: send 1,000"]),
        ("p99.9=20ms", ["p99.9 is promised, and of 100 requests fewer than 10 lie beyond it, so that it differs from run to run by itself: send 10,000"]),
        ("error_rate=1%", ["an error rate of 1.000% is promised, and even no error in 100 requests shows only a rate below 3%: send 300"]),
        ("error_rate=0%", ["an error rate of 0.000% is promised, and even no error in 100 requests shows only a rate below 3%: the more are sent, the less"]),
        ("p90=20ms,max=20ms,mean=20ms,error_rate=3%", []),
    ],
)
def test_what_so_few_requests_cannot_show_is_said(slo, notes):
    result = run(lambda due: "ok", slo=slo)
    assert result.data()["notes"] == notes
    for written in (format_load(result), load_page(result)):
        assert ("differs from run to run by itself: send" in written, "even no error in 100" in written) == ("p99" in slo, bool(notes) and "error" in slo)


@pytest.mark.parametrize(("untold", "said"), [(0, ""), (1, ""), (2, "when 2 of 100 answers arrived"), (100, "when 100 of 100 answers arrived")])
def test_latencies_that_count_until_answers_were_read_are_said_to(untold, said):
    """The first answers may come before the system began to write them down."""
    result = run(lambda due: "ok", slo="max=20ms", untold=untold)
    assert len(result.data()["notes"]) == bool(said)
    for written in (format_load(result), load_page(result)):
        assert said in written
        assert ("unread" in written) == (untold < 100)
    assert result.data()["unread_ms"]["count"] == 100 - untold


@pytest.mark.parametrize("slo", ["error_rate=0.5%", "p99=20ms"])
def test_a_promise_that_is_broken_by_failures_needs_no_more_requests(slo):
    assert run(lambda due: "ok" if due > 0.1 else "failed", slo=slo).data()["notes"] == []


SPLIT = {"queue": 1.0, "compute_input": 0.1, "compute_infer": 1.0, "compute_output": 0.1, "outside": 1.0}

AT_SERVER = {name: value for name, value in SPLIT.items() if name != "outside"}


def limited(*, facts=None, batch=1.0, rows=1, protocol="grpc", late_ms=0.0, due=100, counts=None, split=None, busy=False, median_ms=9.0, **changes):
    server = ServerSide(int(100 * batch), 0, int(100 * batch * rows), 100, {}, {})
    measured = {**SPLIT, **changes} if split is None else split
    return what_limits(Measured(measured, server, facts, protocol, late_ms, due, counts or {"ok": due}, busy, median_ms))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"queue": 9.0, "facts": ModelFacts(8), "batch": 7.5}, "Batches are full (7.5 of 8 rows): more instances"),
        ({"queue": 9.0, "facts": ModelFacts(8), "batch": 1.7}, "Batches are not full (1.7 of 8 rows)"),
        ({"queue": 9.0, "facts": ModelFacts(16), "rows": 4}, "runs alone: where they wait for a free instance, let them share batches (dynamic_batching)"),
        ({"queue": 9.0, "facts": ModelFacts(16), "rows": 4}, "where they wait out a max_queue_delay in which none joins them, shorten it."),
        ({"queue": 9.0, "facts": ModelFacts(4), "rows": 4}, "Batches are full (4.0 of 4 rows)"),
        ({"compute_infer": 9.0, "facts": ModelFacts(16), "rows": 4}, "with 4.0 rows at a time of 16, each request alone"),
        ({"queue": 9.0, "facts": ModelFacts(0)}, "The model does not batch"),
        ({"queue": 9.0}, "More instances let fewer requests wait."),
        ({"compute_infer": 9.0, "facts": ModelFacts(8), "batch": 1.2}, "with 1.2 rows at a time of 8"),
        ({"compute_infer": 9.0, "facts": ModelFacts(8), "batch": 6}, "The model itself takes most of it: a faster precision"),
        ({"outside": 9.0, "late_ms": 8.0}, "This machine sent half of the requests 8.00 ms late or more"),
        ({"outside": 900.0, "late_ms": 6.0}, "This machine sent half of the requests 6.00 ms late or more"),
        ({"outside": 9.0, "busy": True}, "A sender of this machine had no core left"),
        ({"outside": 9.0, "facts": ModelFacts(8, 4_915_200)}, "Each request carries 4.92 MB over grpc"),
        ({"outside": 9.0, "facts": ModelFacts(8, 4_000), "protocol": "http"}, "Requests carry 4,000 bytes, so that it is the way there and back over http"),
        ({"outside": 9.0}, "The way there and back over grpc"),
        ({"outside": 400.0, "facts": ModelFacts(8, 16), "median_ms": 5.0}, "Half of the requests took 5.00 ms or less, so that it is the slow ones that make"),
        ({"outside": 9.0, "median_ms": 5.0}, "The way there and back over grpc"),
        ({"outside": 900.0, "median_ms": 450.0}, "The way there and back over grpc"),
        ({"counts": {"ok": 80, "rejected": 20}}, "20 of 100 requests got no good answer: 20 rejected (the model's queue is full"),
        ({"counts": {"ok": 80, "rejected": 20}, "split": {}}, "they waited too long in it, or the server was ending: its words say which)."),
        ({"counts": {"ok": 50, "gone": 10, "connection": 30}}, "50 of 100 requests got no good answer: 30 connection (the connection could not be made, or"),
        (
            {"counts": {"ok": 50, "gone": 30}},
            "50 of 100 requests got no good answer: 30 gone (the model was unloaded during the run, or the server was ending); 20 never",
        ),
        ({"counts": {"failed": 100}, "split": {}}, "Nothing was answered well"),
        ({"split": {}}, "The server did not say where its time went."),
        ({"split": AT_SERVER}, "Of 2.20 ms on average at the server, 1.00 are spent in the queue, 1.20 in the model, which is more than the answers here took"),
        ({"split": AT_SERVER}, "The model itself takes most of it"),
    ],
)
def test_what_limits_a_run_follows_from_what_was_measured(arguments, words):
    said = limited(**arguments)
    assert words in said
    assert "gRPC" not in said


@pytest.mark.parametrize("counts", [{"ok": 100}, {"ok": 99, "failed": 1}, {"ok": 90, "unfinished": 10}])
def test_few_failures_do_not_stand_first(counts):
    assert limited(counts=counts).startswith("Of 3.20 ms on average")
    assert limited(counts={"ok": 98, "failed": 2}).startswith("2 of 100 requests got no good answer")


@pytest.mark.parametrize(("late", "blamed"), [(1, False), (8, True)])
def test_one_hiccup_of_ten_is_not_what_limits_a_run(late, blamed):
    """Of ten requests, one or eight are sent 200 ms late, which is most of their mean latency."""
    made = run(lambda due: "ok", seconds=1)
    recorder = Recorder()
    for index in range(10):
        late_s = 0.2 if index < late else 0.0
        recorder.add(Key("m", "http", 0, "ok"), index / 10, 0.005 + late_s, late_s)
    limits = dataclasses.replace(made, recorder=recorder, servers={"m": load_results.SERVER}).limits()
    assert ("This machine sent half of the requests" in limits[0]) == blamed


def test_a_good_answer_after_the_deadline_is_too_late():
    answer = Answer(Outcome.OK, "200", 10)
    assert answer.judged_within(0.9, 1.0) == (Outcome.OK, "")
    assert answer.judged_within(1.1, 1.0) == (Outcome.DEADLINE, "the answer came after the deadline of 1 s")
    assert Answer(Outcome.REJECTED, "503", 10, "full").judged_within(1.1, 1.0) == (Outcome.REJECTED, "full")


def test_a_promise_counts_as_kept_only_where_one_was_made_and_the_run_is_valid():
    good = load_results.make(slo="max=1h", errors=0.0)
    assert good.data()["slo"]["kept"] is True
    assert load_results.closed().data()["slo"]["kept"] is None
    broken = dataclasses.replace(good, complete=False, trouble=("it broke",))
    assert (broken.data()["slo"]["kept"], broken.data()["models"][0]["slo"]["kept"]) == (False, False)


def test_each_stage_says_what_became_of_its_requests():
    first, second = load_results.make("50:1s,100:1s", errors=0.2).data()["stages"]
    assert (first["sent_rate"], second["sent_rate"]) == (50, 100)
    assert first["requests"]["rejected"] / first["sent"] == pytest.approx(first["error_rate"])
    assert second["requests"]["ok"] + second["requests"]["rejected"] == second["sent"]
