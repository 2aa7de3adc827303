"""Arrivals, recording, results: what a load test computes, without a server."""

import itertools
import math
import statistics

import load_results
import pytest

from tritongen.load.arrivals import Stage, schedule, trace
from tritongen.load.plan import LoadPlan, ModelLoad, arrivals_of
from tritongen.load.recorder import Key, Recorder, summary
from tritongen.load.result import LoadResult, SenderUse
from tritongen.load.serverside import ServerSide, difference, gauges_of, parse_metrics
from tritongen.report.load import format_load
from tritongen.spec.traffic import Promises, TrafficError, parse_mix, parse_slo

STEADY = (Stage(10, 100, 100, "100/s"),)


def dues(stages, kind, **options):
    return [arrival.due_s for arrival in schedule(stages, kind, **options)]


def test_constant_arrivals_are_even_and_shares_interleave():
    whole = dues(STEADY, "constant")
    assert len(whole) == 1000
    assert all(math.isclose(gap, 0.01, rel_tol=1e-9) for gap in (b - a for a, b in itertools.pairwise(whole)))
    parts = [dues(STEADY, "constant", share=share, shares=3) for share in range(3)]
    assert sorted(itertools.chain(*parts)) == pytest.approx(whole)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_independent_users():
    gaps = [b - a for a, b in itertools.pairwise(dues((Stage(200, 100, 100, ""),), "poisson", seed=1))]
    assert statistics.mean(gaps) == pytest.approx(0.01, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.01, rel=0.05)
    union = sorted(itertools.chain(*(dues((Stage(100, 100, 100, ""),), "poisson", seed=1, share=share, shares=4) for share in range(4))))
    both = [b - a for a, b in itertools.pairwise(union)]
    assert statistics.mean(both) == pytest.approx(0.01, rel=0.05)
    assert statistics.stdev(both) == pytest.approx(0.01, rel=0.08)
    assert dues(STEADY, "poisson", seed=3) == dues(STEADY, "poisson", seed=3) != dues(STEADY, "poisson", seed=4)


def test_a_ramp_has_its_rate_at_every_moment():
    ramp = dues((Stage(10, 0, 200, "up"), Stage(10, 200, 0, "down")), "constant")
    assert len(ramp) == 2000
    for begin, rate in ((0, 10), (4.5, 100), (9, 190), (10, 190), (19, 10)):
        assert sum(begin <= due < begin + 1 for due in ramp) == pytest.approx(rate, abs=2)


def test_a_trace_is_kept_and_shared(tmp_path):
    lines = ["# seconds", "0.5", "0.5", "", "2 # a comment", "11", "99"]
    stages = (Stage(10, 1, 1, "a"), Stage(5, 1, 1, "b"))
    arrivals, beyond = trace(lines, stages)
    assert ([(arrival.due_s, arrival.stage) for arrival in arrivals], beyond) == ([(0.5, 0), (0.5, 0), (2, 0), (11, 1)], 1)
    (tmp_path / "trace").write_text("\n".join(lines))
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=stages, arrivals="trace", trace=str(tmp_path / "trace"))
    assert [arrival.due_s for arrival in arrivals_of(plan, 1, 2)] == [0.5, 11]
    with pytest.raises(ValueError, match="line 2 is 1, and"):
        trace(["2", "1"], stages)
    for text in ("soon", "1_0", "\u0661", "nan", "1 2"):
        with pytest.raises(ValueError, match="line 1 is no number"):
            trace([text], stages)
    assert [arrival.due_s for arrival in trace([".5", "1.", "1e0", "+2"], stages)[0]] == [0.5, 1, 1, 2]


def test_stages_mixes_and_promises_are_read():
    stages = load_results.stages_of("100:30s,100-400:1m", 5)
    assert [(stage.seconds, stage.rate, stage.end_rate, stage.measured) for stage in stages] == [
        (5, 100, 100, False),
        (30, 100, 100, True),
        (60, 100, 400, True),
    ]
    assert [(stage.rate, stage.end_rate) for stage in load_results.stages_of("0-400:1m", 5)] == [(200, 200), (0, 400)]
    assert parse_mix("1:70%,8:30%") == (("1", 0.7), ("8", 0.3))
    assert parse_mix("4") == (("4", 1.0),)
    slo = parse_slo("p99=20ms,p99.9=1s,error_rate=0.1%")
    assert (slo.percentiles, slo.error_rate) == ({"p99": 20.0, "p99.9": 1000.0}, pytest.approx(0.001))
    assert parse_slo("error_rate=0") == parse_slo("error_rate=0%") == Promises({}, 0.0)
    assert parse_slo(" p99.90 = 1s , p50=5 ms") == parse_slo("p99.9=1s,p50.0=5ms") == Promises({"p99.9": 1000, "p50": 5})


@pytest.mark.parametrize("text", ["fast:1s", "100", "100:0s", "-5:1s", "0:1s", "1e9:1s", "100:10"])
def test_stages_that_are_none_are_refused(text):
    with pytest.raises(TrafficError, match="is no stage"):
        load_results.stages_of(text, 0)


@pytest.mark.parametrize("text", ["p99", "p99=20", "p0=1ms", "p100.5=1ms", "error_rate=200%", "error_rate=1", "error_rate=0.5", "q=1ms"])
def test_promises_that_are_none_are_refused(text):
    with pytest.raises(TrafficError, match="is no part of an SLO"):
        parse_slo(text)


def recorded(latencies_ms, *, outcome="ok", stage=0, start=0.0):
    recorder = Recorder()
    for index, latency in enumerate(latencies_ms):
        recorder.add(Key("m", "grpc", stage, outcome), start + index / 100, latency / 1000, 0.0001, "" if outcome == "ok" else "why", latency / 10_000)
    return recorder


def test_what_processes_measured_adds_up_exactly_and_travels_whole():
    one, two = recorded(range(1, 501)), recorded(range(501, 1001))
    both = recorded(range(1, 1001))
    one.merge(Recorder.from_json(two.to_json()))
    again = Recorder.from_json(one.to_json())
    for recorder in (one, again):
        assert summary(recorder.total()) == summary(both.total())
        assert summary(recorder.unread) == summary(both.unread)
    figures = summary(both.total())
    assert (figures["count"], figures["p50"], figures["p99"], figures["max"]) == (1000, *[pytest.approx(value, rel=0.001) for value in (500, 990, 1000)])


def test_percentiles_are_within_a_thousandth_of_the_samples():
    samples = sorted(1.7**power for power in (index / 200 for index in range(4000)))
    figures = summary(recorded(samples).total())
    for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)):
        assert figures[name] == pytest.approx(samples[math.ceil(part * len(samples)) - 1], rel=0.002)


def result(recorder, **changes):
    plan = LoadPlan((ModelLoad("m", slo=parse_slo("p99=20ms,error_rate=1%")),), "grpc://h:1", stages=load_results.stages_of("100:10s", 0))
    return LoadResult(plan, recorder, **changes)


def test_the_verdict_counts_what_failed_and_what_was_never_sent():
    kept = result(recorded([5] * 1000))
    assert (kept.missed_slo(), kept.invalid, kept.rate, kept.target_rate) == ((), (), 100, 100)
    assert "p99 is 50" in result(recorded([5] * 900 + [50] * 100)).missed_slo()[0]
    failing = recorded([5] * 900)
    failing.merge(recorded([1] * 100, outcome="rejected"))
    without, errors = result(failing).missed_slo()
    assert without == "p99: 100 of 1000 requests got no good answer, and 20 ms were promised"
    assert "the error rate is 10.000%" in errors
    late = recorded([5] * 900)
    for _ in range(100):
        late.miss("m", 0, 1.0)
    assert "90% of the requests that were due were sent" in result(late).invalid[0]


def test_a_generator_that_was_the_bottleneck_makes_a_run_invalid():
    assert "used 97% of a core" in result(recorded([5] * 1000), senders=(SenderUse("here 0", 9.7, 10),)).invalid[0]
    assert result(Recorder()).invalid == ("no request was due in the measured time",)


STATISTICS = [
    {
        "inference_count": "10",
        "execution_count": 5,
        "inference_stats": {"success": {"count": "10", "ns": "100"}, "queue": {"count": 10, "ns": 20_000_000}, "compute_infer": {"count": 5, "ns": 50_000_000}},
        "batch_stats": [{"batch_size": "2", "compute_infer": {"count": "5"}}],
    }
]


def test_the_servers_counters_are_differences():
    later = [
        {
            "inference_count": 30,
            "execution_count": 10,
            "inference_stats": {"success": {"count": 30}, "queue": {"count": 30, "ns": 60_000_000}, "compute_infer": {"count": 10, "ns": 150_000_000}},
            "batch_stats": [{"batch_size": 2, "compute_infer": {"count": 5}}, {"batch_size": 4, "compute_infer": {"count": 5}}],
        }
    ]
    found = difference(STATISTICS, later)
    assert (found.requests, found.inferences, found.executions, found.average_batch, found.batches) == (20, 20, 5, 4, {4: 5})
    assert (found.mean_ms["queue"], found.mean_ms["compute_infer"]) == (2, 20)


def test_a_model_that_was_loaded_again_counts_from_zero():
    assert difference(STATISTICS, [{"inference_count": 3, "execution_count": 3, "inference_stats": {"success": {"count": 3}}}]).inferences == 3


METRICS = """# HELP nv_inference_pending_request_count ...
nv_inference_pending_request_count{model="m",version="1"} 7
nv_inference_pending_request_count{model="other",version="1"} 9
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1e9
broken line
"""


def test_gauges_of_the_metrics_page():
    assert gauges_of(METRICS, "m") == {"pending requests": 7, "GPU GPU-1 use": 0.5, "GPU GPU-1 memory": 1e9}
    assert len(parse_metrics(METRICS)) == 4


def test_the_report_says_the_verdict_and_where_the_time_goes():
    gauges = {"pending requests": 1500, "GPU GPU-1 use": 0.987, "GPU GPU-1 memory": 2_078_277_632}
    server = ServerSide(1000, 0, 1000, 250, {"queue": 1.0, "compute_input": 0.1, "compute_infer": 3.0, "compute_output": 0.1}, {4: 250}, gauges=gauges)
    text = format_load(result(recorded([5] * 1000), servers={"m": server}))
    assert "open loop, 100.0 requests/s sent of 100.0 that were due" in text
    assert "average batch 4.00 rows, of 4.00 requests" in text
    assert "The model itself takes most of it" in text
    for words in ("largest pending requests: 1,500", "largest GPU GPU-1 use: 99%", "largest GPU GPU-1 memory: 1.94 GiB"):
        assert words in text
    assert "SLO kept" in text
    data = result(recorded([5] * 1000), servers={"m": server}).data()
    assert (data["schema"], data["valid"], data["slo"]["kept"], data["models"][0]["server"]["average_batch"]) == (1, True, True, 4.0)


def test_several_models_have_results_and_promises_of_their_own():
    data = load_results.several("a", "b", slo="p99=1ms,error_rate=3%").data()
    first, second = data["models"]
    assert (first["requests"], second["requests"]) == ({"ok": 192, "rejected": 8}, {"ok": 196, "rejected": 4})
    assert (first["error_rate"], second["error_rate"], data["error_rate"]) == (pytest.approx(0.04), pytest.approx(0.02), pytest.approx(0.03))
    assert [missed.split(" and ")[0] for missed in data["slo"]["missed"]] == [
        "a: p99: 8 of 200 requests got no good answer,",
        "a: the error rate is 4.000%,",
        "b: p99: 4 of 200 requests got no good answer,",
    ]
    assert first["server"]["average_batch"] == pytest.approx(2.4)
    assert second["server"] is None
    assert {(entry["model"], entry["count"]) for entry in data["errors"]} == {("a", 8), ("b", 4)}


def test_the_report_on_several_models_has_a_line_for_each():
    text = format_load(load_results.several("a", "b", slo="p90=30ms,error_rate=50%"))
    assert "a, b at grpc://host:8001" in text
    assert [line.split()[:2] for line in text.splitlines() if line.startswith(("  a  ", "  b  "))] == [["a", "200"], ["b", "200"], ["a", "average"]]
    for words in (
        "8 x a: rejected: full",
        "a: 8 of 200 requests got no good answer: 8 rejected",
        "b: 4 of 200 requests got no good answer: 4 rejected",
        "the SLO of b: p90 30 ms, errors 50.000%, from slo of b (spec.yaml:3:1)",
    ):
        assert words in text, words


def test_what_was_never_sent_counts_for_its_model():
    kept = load_results.several("a", "b")
    for _ in range(50):
        kept.recorder.miss("b", 1, 2.0)
    first, second = kept.models
    assert (first.missed, second.missed) == (0, 50)
    assert second.error_rate == pytest.approx(54 / 250)
    again = Recorder.from_json(kept.recorder.to_json())
    assert (again.missed, again.messages) == (kept.recorder.missed, kept.recorder.messages)
