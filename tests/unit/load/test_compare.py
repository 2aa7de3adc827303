"""An earlier result beside a new one."""

import dataclasses
import json

import load_results
import pytest

from tritongen.errors import InputError
from tritongen.load.compare import compare, read_earlier
from tritongen.load.findmax import Found, Probe
from tritongen.load.recorder import Recorder
from tritongen.load.verdict import is_thin
from tritongen.report.load import format_comparison
from tritongen.report.load_search import found_json

MEASURES = ["mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"]


@pytest.fixture
def kept(tmp_path):
    """Write a result, or any text, and give its path."""

    def write(content):
        path = tmp_path / "earlier.json"
        path.write_text(content if isinstance(content, str) else content.to_json())
        return path

    return write


def compared(path, now):
    return compare(read_earlier(path), path, now)


def test_a_run_beside_itself_has_no_difference(kept):
    result = load_results.make("50:4s,100:4s")
    comparison = compared(kept(result), result)
    assert [figure.name for figure in comparison.figures] == ["rate", *MEASURES, "errors", "average batch"]
    assert all(figure.change == 0 and figure.earlier == pytest.approx(figure.now) for figure in comparison.figures)
    assert (comparison.differences, comparison.notes) == ((), ())


def test_a_slower_run_is_slower_by_its_factor(kept):
    comparison = compared(kept(load_results.make("500:10s")), load_results.make("500:10s", slower=1.5, errors=0.04))
    changes = {figure.name: figure.change for figure in comparison.figures}
    for name in ("p50", "p90", "p99"):
        assert changes[name] == pytest.approx(0.5, abs=0.05)
    assert changes["errors"] > 0.5
    assert changes["rate"] == 0
    text = format_comparison(comparison)
    assert "+50." in text or "+49." in text
    assert "2026-01-01" in text


def test_a_percentile_with_few_samples_beyond_it_has_a_note(kept):
    comparison = compared(kept(load_results.make("500:10s", errors=0)), load_results.make("100:5s", errors=0))
    notes = {figure.name: figure.note for figure in comparison.figures if figure.note}
    assert list(notes) == ["p99", "p99.9", "p99.99"]
    assert notes["p99"] == "fewer than 10 samples beyond it (50 earlier, 5 now)"
    assert notes["p99"] in format_comparison(comparison)


@pytest.mark.parametrize(
    ("count", "name", "thin"), [(1000, "p99", False), (999, "p99", True), (10_000, "p99.9", False), (9_999, "p99.9", True), (20, "p50", False)]
)
def test_ten_samples_beyond_are_enough(count, name, thin):
    assert is_thin(count, name) is thin


def test_settings_and_versions_that_differ_are_listed(kept):
    earlier = dataclasses.replace(load_results.make(seed=1), versions={"tritongen": "0.1.0", "triton": "2.40.0"})
    now = load_results.make("60:4s", seed=2, slo="p99=30ms")
    found = {entry.name: (entry.earlier, entry.now) for entry in compared(kept(earlier), now).differences}
    assert found == {
        "stages.0.rate": ("50", "60"),
        "stages.0.end_rate": ("50", "60"),
        "stages.1.rate": ("50", "60"),
        "stages.1.end_rate": ("50", "60"),
        "stages.1.name": ("50/s", "60/s"),
        "seed": ("1", "2"),
        "models.0.slo.percentiles.p99": ("20", "30"),
        "models.0.slo.error_rate": ("0.05", "null"),
        "versions.triton": ("2.40.0", "2.51.0"),
        "versions.locust": ("not there", "2.40"),
    }
    assert "seed: 1, now 2" in format_comparison(compared(kept(earlier), now))


def test_a_stage_more_is_one_difference(kept):
    (more,) = compared(kept(load_results.make("50:4s")), load_results.make("50:4s,70:4s")).differences
    assert (more.name, more.earlier) == ("stages.2", "not there")
    assert more.now.startswith('{"seconds": 4')
    assert len(more.now) <= 80


def test_runs_that_say_little_are_named(kept):
    broken = dataclasses.replace(load_results.make(), trouble=("sender here 0 died",), complete=False)
    assert compared(kept(broken), load_results.make()).notes == ("the earlier run is not valid: sender here 0 died", "the earlier run did not come to its end")
    assert "NOTE: this run is not valid: sender here 0 died" in format_comparison(compared(kept(load_results.make()), broken))


def test_a_run_without_answers_or_server_has_no_figures_there(kept):
    empty = dataclasses.replace(load_results.make(), recorder=Recorder(), servers={})
    for earlier, now in ((empty, load_results.make()), (load_results.make(), empty)):
        figures = {figure.name: figure for figure in compared(kept(earlier), now).figures}
        assert figures["p99"].change is figures["average batch"].change is None
        assert "-" in format_comparison(compared(kept(earlier), now))


def test_a_search_is_compared_by_its_best_run(kept):
    result = load_results.make()
    path = kept(found_json(Found(50.0, (Probe(50.0, result, (), False),))))
    assert all(figure.change == 0 for figure in compared(path, result).figures)
    with pytest.raises(InputError, match="kept no rate"):
        read_earlier(kept(found_json(Found(0.0, (Probe(50.0, result, ("p99 is too high",), False),)))))


def changed(**changes):
    return json.dumps({**load_results.make().data(), **changes})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no whole JSON document"),
        (changed()[:500], "no whole JSON document"),
        ("[" * 100_000, "no whole JSON document"),
        ('{"schema": NaN}', "no whole JSON document"),
        ("{}", "no result of a load test in version 1"),
        ("[1]", "no result of a load test in version 1"),
        ("7", "no result of a load test in version 1"),
        ("null", "no result of a load test in version 1"),
        ('{"probes": []}', "no result of a load test in version 1"),
        (changed(schema=2), "no result of a load test in version 1"),
        ('{"schema": 1, "name": "another thing"}', "it lacks 'started', 'versions', "),
        ('{"schema": 1, "probes": [], "result": 5}', "'the document'"),
        (changed(rate=-1), "'rate'"),
        (changed(rate="fast"), "'rate'"),
        (changed(rate=True), "'rate'"),
        (changed(error_rate=2), "'error_rate'"),
        (changed(latency_ms={"count": 3, "p99": "1"}), "'latency_ms.p99'"),
        (changed(latency_ms=None), "'latency_ms'"),
        (changed(settings=[1]), "'settings'"),
        (changed(versions={"triton": 5}), "'versions.triton'"),
        (changed(models=[{"model": "m", "server": {}}]), "'models.0.server.average_batch'"),
        ("<!doctype html><html></html>", "web page"),
    ],
)
def test_a_damaged_or_foreign_file_is_said(kept, text, words):
    with pytest.raises(InputError) as caught:
        read_earlier(kept(text))
    assert words in str(caught.value)
    assert str(caught.value).count("earlier.json") == len(caught.value.diagnostics)
    assert [bool(diagnostic.hint) for diagnostic in caught.value.diagnostics] == [True]


def test_everything_that_is_wrong_is_said_at_once(kept):
    with pytest.raises(InputError) as caught:
        read_earlier(kept(changed(rate="fast", valid=1, started=None)))
    assert len(caught.value.diagnostics) == 3
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"TG422"}


def test_hostile_words_do_not_reach_the_terminal(kept):
    earlier = load_results.make().data()
    earlier["settings"]["data"] = "\x1b[31mred"
    earlier["started"] = "\x1b]0;title\x07"
    text = format_comparison(compared(kept(json.dumps(earlier)), load_results.make()))
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text


def test_each_of_several_models_stands_beside_itself(kept):
    comparison = compared(kept(load_results.several("a", "b", "c")), load_results.several("a", "d", "c"))
    figures = {figure.title: figure for figure in comparison.figures}
    assert [figures[f"{name} of a"].change for name in ("p50", "p99", "p99.9", "max", "errors", "average batch")] == [0] * 6
    assert (figures["average batch of d"].earlier, figures["average batch of d"].now) == (None, pytest.approx(2.4))
    assert (figures["errors of b"].earlier, figures["errors of b"].now) == (pytest.approx(2), None)
    assert figures["p50 of d"].now == pytest.approx(figures["p50"].now, rel=0.2)
    text = format_comparison(comparison)
    assert "NOTE: the earlier run was of a, b, c, and this one is of a, d, c" in text
    assert next(line for line in text.splitlines() if line.startswith("  p99 of d ")).split()[3:] == ["-", *f"{figures['p99 of d'].now:.3f} ms -".split()]


def test_loops_of_two_kinds_are_no_measure_for_each_other(kept):
    closed, opened = load_results.closed(), load_results.make()
    assert "was a closed loop, and this one is an open loop" in compared(kept(closed), opened).notes[0]
    assert "was an open loop, and this one is a closed loop" in compared(kept(opened), closed).notes[0]
