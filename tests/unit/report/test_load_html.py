"""The page of a load test says what the result holds, and needs nothing else."""

import dataclasses
import re
from html.parser import HTMLParser

import load_results
import pytest

from tritongen.load.arrivals import Stage
from tritongen.load.compare import compare, read_earlier
from tritongen.load.findmax import Found, Probe
from tritongen.load.plan import LoadPlan, ModelLoad
from tritongen.load.recorder import Key, Recorder
from tritongen.load.result import LoadResult
from tritongen.report.load import format_load
from tritongen.report.load_charts import distribution, moments
from tritongen.report.load_html import load_page


class Page(HTMLParser):
    """Headings, text and attributes of a page; unclosed elements are an error."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.tags, self.attributes = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data.strip())

    @property
    def text(self):
        return " ".join(word for word in self.words if word)


def page(*arguments):
    return Page(load_page(*arguments))


HEADINGS = ["Latency over time", "Latency by percentile", "Throughput over time", "Where the time goes", "Executed batches"]


def test_every_part_of_a_result_is_there():
    found = page(load_results.make())
    for words in (
        *HEADINGS,
        "Errors",
        "What the server counted",
        "The sending side",
        "Settings",
        "Versions",
        "SLO kept",
        "11.18 GiB",
        "deadline_s",
        "2.51.0",
    ):
        assert words in found.words or words in found.text, words
    assert "Latency by throughput" not in found.text
    assert found.tags.count("figure") == len(HEADINGS)


def test_it_refers_to_nothing_outside():
    text = load_page(load_results.make("50:2s,100:2s"))
    addresses = [value for name, value in Page(text).attributes if name in ("src", "href", "action", "data", "srcset")]
    assert addresses == ["data:,"]
    assert "url(" not in text
    assert "@import" not in text
    assert "<script" not in text


def test_words_of_others_are_shown_and_not_obeyed():
    result = load_results.make(model=load_results.HOSTILE, message=load_results.HOSTILE)
    result = dataclasses.replace(result, trouble=(load_results.HOSTILE,), versions={"triton": load_results.HOSTILE})
    text = load_page(result)
    assert "<script" not in text
    assert "\x1b" not in text
    assert Page(text).text.count("<script>alert('x')</script> & \\x1b[31m\"red\"") >= 4


@pytest.mark.parametrize(
    ("result", "verdict", "reason"),
    [
        (load_results.make(), "SLO kept", ""),
        (load_results.make(slo="p99=1ms"), "SLO MISSED", "and 1 ms were promised"),
        (dataclasses.replace(load_results.make(), trouble=("sender here 0 died",), complete=False), "NOT VALID", "sender here 0 died"),
        (dataclasses.replace(load_results.make(), complete=False), "BROKEN OFF", ""),
        (dataclasses.replace(load_results.make(slo="p99=1ms"), trouble=("sender here 0 died",)), "NOT VALID", "SLO missed: p99 is"),
        (dataclasses.replace(load_results.make(slo="p99=1ms"), complete=False), "BROKEN OFF", "SLO missed: p99 is"),
        (load_results.closed(), "no SLO was given", ""),
    ],
)
def test_the_verdict_stands_first(result, verdict, reason):
    found = page(result)
    first_heading = found.words.index("Latency")
    assert verdict in found.words[:first_heading]
    assert reason in " ".join(found.words[:first_heading])


def test_stages_have_rows_and_a_chart_of_their_own():
    found = page(load_results.make("50:2s,100:2s,100-200:2s"))
    assert "Latency by throughput" in found.words
    assert {"50/s", "100/s", "100 to 200/s"} <= set(found.words)


def test_a_promise_that_lies_off_the_scale_is_said_in_words():
    text = page(load_results.make("50:2s,100:2s", slo="p99=9s,p95=10us,p50=5ms")).text
    assert text.count("SLO p99 9000 ms lies above what is drawn. SLO p95 0.01 ms lies below what is drawn.") == 3
    assert "SLO p50 5 ms lies" not in text


def test_a_search_shows_what_was_tried():
    runs = [(rate, load_results.make(f"{rate}:2s")) for rate in (50, 100, 200)]
    search = Found(100.0, tuple(Probe(float(rate), run, ("p99 is too high",) if rate == 200 else (), False) for rate, run in runs))
    found = page(search.best, None, search)
    assert "Latency by throughput" in found.words
    assert "p99 is too high" in found.words
    assert "100.0 requests/s is the highest rate that keeps the SLO" in found.text


def test_an_earlier_run_stands_beside_it(tmp_path):
    path = tmp_path / "earlier.json"
    path.write_text(load_results.make(seed=2).to_json())
    now = load_results.make()
    found = page(now, compare(read_earlier(path), path, now))
    assert {f"Compared with {path}", "the earlier run", "average batch", "Settings and versions that differ", "seed"} <= set(found.words)
    assert "samples beyond it" in found.text


@pytest.mark.parametrize(
    "result",
    [
        dataclasses.replace(load_results.make(), recorder=Recorder(), servers={}, senders=(), versions={}),
        load_results.make(errors=1.0),
        load_results.make("1:1s"),
        load_results.make(server=None),
        load_results.closed(1),
    ],
    ids=["nothing", "only errors", "one request", "no server", "closed, one request"],
)
def test_a_result_with_little_in_it_is_a_page_too(result):
    assert "Settings" in page(result).words


def test_slow_answers_and_long_runs_are_drawn():
    recorder = Recorder()
    for second in range(1000):
        recorder.add(Key("m", "grpc", 0, "ok"), second + 0.5, 3600.0 if second == 5 else 0.000001, 0.0)
    result = LoadResult(LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(1000, 1, 1, "1/s"),)), recorder)
    text = load_page(result)
    assert "nan" not in re.sub(r"<style>.*</style>", "", text, flags=re.DOTALL).lower().split()
    assert len(text) < 400_000


def at(*dues):
    recorder = Recorder()
    for due in dues:
        recorder.add(Key("m", "grpc", 1, "ok"), due, 0.001, 0.0)
    return recorder


def test_rates_are_of_the_time_that_was_measured():
    """A warmup that ends within a second, and an end within another: a rate is not halved by it."""
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(1.5, 10, 10, "warmup", measured=False), Stage(2, 10, 10, "10/s")))
    recorder = at(*(1.5 + index / 10 + 0.01 for index in range(20)))
    assert [(moment.middle, moment.due) for moment in moments(LoadResult(plan, recorder))] == [(1.75, 10), (2.5, 10), (3.25, 10)]


def test_a_second_without_requests_has_a_rate_of_0():
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(4, 1, 1, "1/s"),))
    assert [moment.due for moment in moments(LoadResult(plan, at(0.5, 3.5)))] == [1, 0, 0, 1]


def test_seconds_of_a_long_run_are_put_together():
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(900, 1, 1, "1/s"),))
    found = moments(LoadResult(plan, at(*(second + 0.5 for second in range(900)))))
    assert len(found) == 300
    assert {(moment.due, moment.latencies.count) for moment in found} == {(1, 3)}
    assert "due in each 3 seconds" in load_page(LoadResult(plan, at(*range(900))))


def test_what_was_never_sent_is_due():
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(1, 1, 1, "1/s"),))
    recorder = at(0.5)
    recorder.miss("m", 0, 0.7)
    (moment,) = moments(LoadResult(plan, recorder))
    assert (moment.due, moment.ok, moment.errors) == (2, 1, 0)


def test_seconds_without_answers_are_shaded_and_not_left_empty():
    """Two seconds in which all is well, one in which half fails, one in which nothing is answered, one in which nothing is due."""
    plan = LoadPlan((ModelLoad("m"),), "grpc://h:1", stages=(Stage(5, 2, 2, "2/s"),))
    recorder = at(0.1, 0.6, 1.1, 1.6, 2.1)
    for due in (2.6, 3.1, 3.6):
        recorder.add(Key("m", "grpc", 0, "deadline"), due, 10.0, 0.0, "no answer in time")
    text = load_page(LoadResult(plan, recorder))
    assert re.findall(r'<rect class="shade"[^>]*><title>([^<]*)', text) == [f"{part} of the requests got no good answer" for part in ("50.0%", "100.0%")]
    depths = [float(depth) for depth in re.findall(r'<rect class="shade"[^>]*opacity="([0-9.]+)"', text)]
    assert 0 < depths[0] < depths[1] < 1
    assert "Shaded: some got no good answer" in text
    assert "Shaded" not in load_page(LoadResult(plan, at(0.1, 4.1)))


def test_the_distribution_rises_from_the_smallest_to_the_largest():
    points = distribution(load_results.make("500:4s", errors=0).latencies())
    assert points[0][0] == 0
    assert points[-1][0] == 100
    assert [value for _, value in points] == sorted(value for _, value in points)
    assert points[-1][1] == pytest.approx(load_results.make("500:4s", errors=0).data()["latency_ms"]["max"])


def test_several_models_have_rows_and_charts_of_their_own():
    found = page(load_results.several("a", load_results.HOSTILE, "c"))
    for words in (
        "Executed batches of a",
        "Where the time goes of a",
        "What the server counted of a",
        "The SLO of c: p99 20 ms, from slo of c (spec.yaml:3:1)",
    ):
        assert words in found.text, words
    assert "Executed batches of c" not in found.text
    assert "\x1b" not in found.text
    assert "script" not in found.tags
    assert found.words.count("c") >= 2


@pytest.mark.parametrize(("part", "outside"), [(0.9, True), (1.005, True), (1.05, False)])
def test_what_rounding_explains_is_no_slower_server(part, outside):
    mean = load_results.make().models[0].data(whole=True)["latency_ms"]["mean"]
    server = dataclasses.replace(load_results.SERVER, mean_ms={"compute_infer": part * mean})
    found = load_results.make(server=server).data()["models"][0]["outside_ms"]
    assert (found is not None) == outside
    assert found is None or found == pytest.approx(max(1 - part, 0) * mean)


def test_a_server_that_counted_slower_requests_than_were_answered_here_is_said_to():
    """Those that were given up: nothing is left for the network, and no answered request took so long."""
    queue = dataclasses.replace(load_results.SERVER, mean_ms={**load_results.SERVER.mean_ms, "queue": 700.0})
    result = load_results.make(server=queue)
    text, data, shown = format_load(result), result.data(), page(result).text
    for words in (text, data["limits"], shown):
        assert "Of 702.45 ms on average at the server, 700.00 are spent in the queue, 2.45 in the model, which is more than the answers here took" in words
        assert "in network and client" not in words
    assert data["models"][0]["outside_ms"] is None
    assert "The mean time of a request at the server" in shown
    assert "network + client" not in shown
