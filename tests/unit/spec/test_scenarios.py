"""Load tests in a spec: what is read, and what is refused where it stands."""

import pytest

from tritongen.spec.traffic import Promises, Step

TWO = """\
version: 1
models:
  - {{name: a, source: a.onnx, batching: {{max: 8}}, shapes: {{x: {{min: [3, 10], opt: [3, 20], max: [3, 30]}}}}}}
  - {{name: b, source: b.onnx, batching: none}}
load: {{scenarios: {{s: {{{}}}}}}}
"""


def scenario(folder, text):
    return folder.load(TWO.format(text)).spec.load.scenarios["s"]


def test_every_key(folder):
    text = """
    models: {a: 3, b: {weight: 0.5, slo: {max: 1s}}}, stages: [100:30s, 100-400:1m], warmup: 0s, deadline: 2s, arrivals: constant,
    slo: {p99.9: 50ms, error_rate: 0.1%}, protocol: http, pool: 9, seed: 7"""
    found = scenario(folder, text)
    assert {name: own.weight for name, own in found.models.items()} == {"a": 3, "b": 0.5}
    assert found.models["b"].slo == Promises({"max": 1000})
    assert found.stages == (Step(100, 100, 30), Step(100, 400, 60))
    assert (found.duration_us, found.warmup_us, found.deadline_us, found.arrivals) == (30_000_000, 0, 2_000_000, ("constant", ""))
    assert found.slo == Promises({"p99.9": 50}, 0.001)
    assert (found.protocol, found.pool, found.seed) == ("http", 9, 7)


@pytest.mark.parametrize("mix", ["[1:70%, 8:30%]", "'1:70%,8:30%'", "'1:7, 8:3'"])
def test_a_mix_is_a_text_or_a_list_of_its_parts(folder, mix):
    assert scenario(folder, f"models: [a], batch_mix: {mix}").batch_mix == ((1, 0.7), (8, 0.3))


def test_short_forms(folder):
    assert scenario(folder, "models: [a], batch_mix: 4, shape_mix: {x: 3x20}").batch_mix == ((4, 1.0),)
    assert {name: own.weight for name, own in scenario(folder, "models: [a, b]").models.items()} == {"a": 1, "b": 1}
    assert scenario(folder, "").models is None
    assert scenario(folder, "data: random").data == "random"
    assert [scenario(folder, f"warmup: {none}").warmup_us for none in ("0", "0s", "0ms")] == [0, 0, 0]
    assert scenario(folder, "slo: {p99.90: 1s}").slo == Promises({"p99.9": 1000})
    assert [scenario(folder, f"slo: {{error_rate: {text}}}").slo.error_rate for text in ("1%", "0.5 %", "0", "0%")] == [0.01, 0.005, 0, 0]


@pytest.mark.parametrize(
    ("text", "code", "at", "words"),
    [
        ("rate: 0", "TG011", "0", "must be more than 0"),
        ("rate: fast", "TG010", "fast", "expected a number, got the text 'fast'"),
        ("rate: 5, users: 2", "TG015", "2", "users is given, and so is rate"),
        ("users: 5, stages: '1:1s'", "TG015", "'1:1s'", "stages is given, and so is users"),
        ("users: 5, arrivals: constant", "TG015", "constant", "in a closed loop a request is sent when the one before was answered"),
        ("rate: 5, arrivals: 'trace:t'", "TG015", "'trace:t'", "a trace says itself when each request is due"),
        ("duration: 800h", "TG011", "800h", "duration is 2880000 s, and a load test may take 30 days"),
        ("stages: [1:400h, 2:400h]", "TG011", "[1:400h", "the length of all stages is 2880000 s"),
        ("models: [a], batch_mix: [1:70%, 8:0.3]", "TG011", "[1:70%", "some parts of '1:70%,8:0.3' are percentages and some are not"),
        ("stages: [100:30s, soon]", "TG011", "[100:30s", "'soon' is no stage: 'soon' is no number of requests a second"),
        ("stages: []", "TG010", "[]", "got an empty list"),
        ("stages: 50:1s, duration: 5s", "TG015", "5s", "duration is given, and so is stages, which have their own durations"),
        ("duration: 0", "TG012", "0", "has no unit"),
        ("warmup: 5", "TG012", "5", "has no unit"),
        ("warmup: false", "TG012", "false", "expected a duration"),
        ("duration: 0s", "TG011", "0s", "duration is 0"),
        ("duration: 10", "TG012", "10", "has no unit"),
        ("arrivals: soon", "TG011", "soon", "'soon' are no arrivals"),
        ("arrivals: 'trace:'", "TG011", "'trace:'", "are no arrivals"),
        ("slo: {p99: 20}", "TG011", "20", "has no unit"),
        ("slo: {p99.0: 20ms, p99: 10ms}", "TG015", "10ms", "p99 is there twice"),
        ("slo: {p99: 0ms}", "TG011", "0ms", "every request takes some time"),
        ("slo: {p0: 1ms}", "TG011", "1ms", "there is no such measure"),
        ("slo: {error_rate: 120%}", "TG011", "120%", "between 0 and 100 %"),
        ("slo: {error_rate: 1}", "TG011", "1", "it is a percentage with its sign"),
        ("slo: {error_rate: few}", "TG011", "few", "between 0 and 100 %"),
        ("slo: {}", "TG009", "{}", "it promises nothing"),
        ("slo: 20ms", "TG010", "20ms", "expected a mapping"),
        ("models: {a: 0}", "TG011", "a: 0", "must be more than 0"),
        ("models: {}", "TG011", "{}", "no model is named"),
        ("models: [a, a]", "TG011", "[a, a]", "'a' is there twice"),
        ("models: [c]", "TG011", "models", "the spec has no model 'c'"),
        ("models: {c: 1, a: 1}", "TG011", "1", "the spec has no model 'c'"),
        ("models: [a], batch_mix: 0", "TG011", "0", "a batch is a whole number of rows"),
        ("models: [a], batch_mix: [1:70%, 8]", "TG011", "[1:70%", "'8' is no part of a mix"),
        ("models: [a], batch_mix: 1.5", "TG010", "1.5", "got the number 1.5"),
        ("models: [a], batch_mix: [1:50%, 9:50%]", "TG015", "[1:50%", "a request of 9 rows is too large: a has batching.max: 8"),
        ("models: [b], batch_mix: 2", "TG015", "2", "b does not batch"),
        ("models: {b: {batch_mix: 2}}", "TG015", "2", "b does not batch"),
        ("models: [a], shape_mix: {x: 3xx4}", "TG011", "3xx4", "'3xx4' is no shape"),
        ("models: [a], shape_mix: {x: 3x31}", "TG015", "3x31", "3x31 lies outside shapes of a: 3x10 to 3x30"),
        ("models: [a], shape_mix: {x: 3x20x1}", "TG015", "3x20x1", "has 3 dimensions, and shapes of a has 2"),
        ("shape_mix: {x: 3x20}", "TG015", "{x: 3x20}", "about the inputs of one model, and the scenario has 2"),
        ("data: d.npz", "TG015", "d.npz", "about the inputs of one model, and the scenario has 2"),
        ("speed: 5", "TG008", "speed", "there is no key 'speed'"),
        ("protocol: udp", "TG011", "udp", "expected one of grpc, http"),
        ("pool: 0", "TG011", "0", "must be at least 1"),
        ("pool: 100001", "TG011", "100001", "must be at most 100000"),
    ],
)
def test_a_mistake_is_one_finding_where_it_stands(folder, text, code, at, words):
    whole = TWO.format(text)
    finding = folder.finding(whole)
    line = whole.splitlines()[finding.location.line - 1]
    assert (finding.code, words in finding.message) == (code, True), finding.message
    assert line[finding.location.column - 1 :].startswith(at)
    assert finding.hint


def test_all_mistakes_are_said_at_once(folder):
    found = folder.findings(TWO.format("rate: 0, duration: 5, slo: {p99: 1, q: 2ms}, batch_mix: x"))
    assert len(found) == 5


def test_a_load_test_that_is_wrong_hides_nothing_of_the_models(folder):
    text = TWO.format("rate: 0").replace("batching: {max: 8}", "batching: {max: -1}")
    assert {finding.message.split(":")[0] for finding in folder.findings(text)} == {"load.scenarios.s.rate", "batching.max"}


class TestFiles:
    def test_how_they_are_read(self, folder):
        (folder.path / "images").mkdir()
        sample = folder.model("samples: {x: {files: images, image: {color: bgr, range: [0, 255], mean: [1, 2, 3]}, text: {per: file}}}").samples["x"]
        assert (sample.files, sample.image.color, sample.image.range, sample.image.mean, sample.text.per) == ("images", "bgr", (0, 255), (1, 2, 3), "file")

    @pytest.mark.parametrize(
        ("text", "code", "words"),
        [
            ("files: gone", "TG016", "there is no file 'gone' in the spec's folder"),
            ("files: ..", "TG016", "lies outside the spec's folder"),
            ("files: ' '", "TG011", "the path is empty"),
            ("image: {}", "TG009", "'files' is missing"),
            ("files: ., image: {range: [1]}", "TG011", "expected the two numbers that 0 and 255 become, got 1"),
            ("files: ., image: {range: [1, 1]}", "TG011", "both ends of the range are the same"),
            ("files: ., image: {std: [0, 1, 1]}", "TG011", "values are divided by it"),
            ("files: ., image: {resize: zoom}", "TG011", "expected one of stretch, crop, pad"),
            ("files: ., audio: {sample_rate: 0}", "TG011", "must be at least 1"),
        ],
    )
    def test_a_mistake_is_one_finding(self, folder, text, code, words):
        finding = folder.model_finding(f"samples: {{x: {{{text}}}}}")
        assert (finding.code, words in finding.message) == (code, True), finding.message
