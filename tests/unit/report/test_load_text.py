"""A load test's result in words: each part of a run with its rate, its errors and its tail, and no figure where there was nothing to count."""

import re

import load_results
import pytest

from tritongen.load.plan import LoadPlan, ModelLoad, traced
from tritongen.load.recorder import Recorder
from tritongen.load.result import LoadResult
from tritongen.report.load import described_loop, format_load
from tritongen.report.load_html import load_page


def silent_stage():
    """Two stages, in the second of which nothing is answered, and some is never sent."""
    made = load_results.make("50:2s,100:2s", errors=0)
    for key in [key for key in made.recorder.histograms if key.stage == 2]:
        made.recorder.histograms[key._replace(outcome="connection")] = made.recorder.histograms.pop(key)
    for _ in range(100):
        made.recorder.miss("recognizer", 2, 3.5)
    return made


def line(text, name):
    """The cells of a line of a table in words, by the columns' names."""
    names = next(row.split() for row in text.splitlines() if row.split()[:2] in (["stage", "sent"], ["model", "sent"]))
    return dict(zip(names, next(row.split() for row in text.splitlines() if row.startswith(f"  {name} ")), strict=True))


def cells(page, name):
    """The same of the page."""
    table = re.search(r'<table id="latency">(.*?)</table>', page, re.DOTALL)[1]
    names = re.findall(r"<th[^>]*>([^<]*)", table)
    return dict(zip(names, re.findall(r"<td[^>]*>([^<]*)", re.search(rf"<tr>(<td>{name}</td>.*)</tr>", table)[1]), strict=True))


def test_each_stage_has_its_rate_and_its_errors():
    text, page = format_load(silent_stage()), load_page(silent_stage())
    first, second = line(text, "50/s"), line(text, "100/s")
    assert (first["sent"], first["sent/s"], first["errors"]) == ("100", "50.0", "0.000%")
    assert (second["sent"], second["sent/s"], second["errors"]) == ("200", "100.0", "100.000%")
    assert float(first["p50"]) > 0
    for name, row in (("50/s", first), ("100/s", second)):
        shown = cells(page, name)
        assert [shown[each] for each in ("sent", "sent/s", "errors")] == [row[each] for each in ("sent", "sent/s", "errors")]
    assert cells(page, "100/s")["answered"] == "0"


def test_what_was_not_answered_took_no_time_that_could_be_shown():
    text, page = format_load(silent_stage()), load_page(silent_stage())
    assert {line(text, "100/s")[name] for name in ("p50", "p99", "p99.9", "max")} == {"-"}
    assert {cells(page, "100/s")[name] for name in ("p50", "p75", "p99.99", "max")} == {"-"}


def test_nothing_due_is_no_error_rate():
    made = load_results.make("50:2s,100:2s")
    for key in [key for key in made.recorder.histograms if key.stage == 2]:
        del made.recorder.histograms[key]
    del made.recorder.sent[2]
    assert line(format_load(made), "100/s") == {"stage": "100/s", "sent": "0", "sent/s": "0.0", **dict.fromkeys(("p50", "p99", "p99.9", "max", "errors"), "-")}


def test_each_model_has_its_rate_and_its_errors():
    found = load_results.several("a", "b")
    assert (line(format_load(found), "a")["sent/s"], line(format_load(found), "a")["errors"]) == ("50.0", "4.000%")
    assert cells(load_page(found), "b")["errors"] == "2.000%"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (load_results.make("50:4s"), "50.0 requests/s sent of 50.0 that were due (50/s asked), poisson arrivals"),
        (load_results.make("50-100:4s"), "that were due (50 to 100/s asked), poisson"),
        (load_results.make("50:4s,100:4s"), "that were due, poisson"),
        (LoadResult(LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=traced(2.0, 0.0), arrivals="trace", trace="t"), Recorder()), "that were due, trace"),
        (LoadResult(LoadPlan((ModelLoad("m"),), "grpc://h:1", users=1, seconds=1.0), Recorder()), "closed loop of 1 user (it waits"),
        (load_results.closed(), "closed loop of 4 users (it waits"),
    ],
    ids=["rate", "ramp", "stages", "trace", "one user", "users"],
)
def test_what_was_asked_for_stands_beside_what_was_drawn(result, words):
    assert words in described_loop(result)
