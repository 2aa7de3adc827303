"""From a spec's scenario, or a model's name, and the options to what is sent: which value wins, and where a promise comes from."""

import json

import networks
import pytest

from tritongen.errors import InputError
from tritongen.load.plan import LoadPlan
from tritongen.spec.traffic import Promises
from tritongen.workflow.loading import plan_for_model, plan_for_spec

SPEC = """\
version: 1
models:
  - {name: a, source: a.onnx, batching: {max: 8}, slo: {p50: 100us, p99: 500us, error_rate: 2%}}
  - {name: b, source: b.onnx, shapes: {x: [8]}, samples: {x: {files: data}}}
load:
  scenarios:
    mixed:
      models: {a: 3, b: {batch_mix: 4, slo: {max: 1s}}}
      rate: 200
      arrivals: constant
      batch_mix: [1:50%, 2:50%]
      protocol: http
    ramp: {models: {b: {data: more}}, stages: [1:1s], slo: {error_rate: 0.1%}, pool: 5, seed: 9, warmup: 1s, deadline: 3s}
    crowd: {models: [a], users: 4, duration: 7s}
    again: {models: [a], arrivals: trace:data/t.txt, duration: 7s}
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "data").mkdir()
    for name in "ab":
        networks.mlp(tmp_path / f"{name}.onnx")
    (tmp_path / "spec.yaml").write_text(SPEC)
    return tmp_path / "spec.yaml"


def test_models_have_their_own_values_before_the_scenarios(spec):
    plan = plan_for_spec(spec, {}, scenario="mixed")
    first, second = plan.models
    assert [(load.model, load.part, load.batch_mix) for load in plan.models] == [("a", 3, ((1, 0.5), (2, 0.5))), ("b", 1, ((4, 1.0),))]
    assert (plan.scenario, plan.url, plan.arrivals) == ("mixed", "http://127.0.0.1:8000", "constant")
    assert [(stage.rate, stage.seconds, stage.measured) for stage in plan.stages] == [(200, 5, False), (200, 30, True)]
    assert second.shape_mix == (({"x": (8,)}, 1.0),)
    assert second.samples["x"]["files"] == str(spec.parent / "data")
    assert (first.slo, second.slo) == (Promises({"p50": 0.1, "p99": 0.5}, 0.02), Promises({"max": 1000}))
    assert first.slo_from == f"slo of a ({spec}:3:51)"
    assert second.slo_from == f"scenario mixed ({spec}:8:40)"


def test_a_scenario_says_how_requests_come(spec):
    ramp, crowd = plan_for_spec(spec, {}, scenario="ramp"), plan_for_spec(spec, {}, scenario="crowd")
    assert (ramp.pool, ramp.seed, ramp.deadline_s, [stage.seconds for stage in ramp.stages]) == (5, 9, 3, [1, 1])
    assert (ramp.models[0].data, ramp.models[0].slo.error_rate) == (str(spec.parent / "more"), 0.001)
    assert (crowd.users, crowd.seconds, crowd.warmup_s, crowd.stages) == (4, 7, 5, ())


def test_a_trace_says_itself_when_requests_are_due_and_has_no_warmup_unless_one_is_asked_for(spec):
    plan = plan_for_spec(spec, {}, scenario="again")
    assert (plan.arrivals, plan.trace) == ("trace", str(spec.parent / "data/t.txt"))
    assert [(stage.name, stage.seconds) for stage in plan.stages] == [("trace", 7)]
    assert [stage.seconds for stage in plan_for_spec(spec, {"warmup_us": 1_000_000}, scenario="again").stages] == [1, 7]
    assert [plan_for_spec(spec, given, scenario="again").arrivals for given in ({"rate": 2.0}, {"users": 3})] == ["poisson", "poisson"]
    for scenario in ("mixed", "ramp", "crowd"):
        plan = plan_for_spec(spec, {"arrivals": ("trace", "t.txt")}, scenario=scenario)
        assert (plan.arrivals, plan.users, len(plan.stages) - (plan.length_s > 30)) == ("trace", 0, 1) or scenario == "ramp"


def test_options_win(spec):
    given = {"rate": 5.0, "duration_us": 2_000_000, "batch_mix": ((1, 1.0),), "slo": Promises({"p99": 1.0}), "seed": 3, "arrivals": ("constant", "")}
    plan = plan_for_spec(spec, given, scenario="mixed", url="grpc://there:1")
    assert {load.batch_mix for load in plan.models} == {((1, 1.0),)}
    assert {(load.slo.percentiles["p99"], load.slo_from) for load in plan.models} == {(1.0, "--slo")}
    assert (plan.url, plan.seed, plan.arrivals, plan.stages[-1].rate, plan.stages[-1].seconds) == ("grpc://there:1", 3, "constant", 5, 2)
    assert plan_for_spec(spec, {"users": 2}, scenario="ramp").stages == ()
    assert plan_for_spec(spec, {"rate": 2.0}, scenario="crowd").users == 0
    assert {load.data for load in plan_for_spec(spec, {"data": "random"}, scenario="mixed").models} == {"random"}
    searched = plan_for_spec(spec, {"users": None, "stages": None}, scenario="mixed")
    assert searched.stages[-1].rate == 200
    assert plan_for_spec(spec, {"users": None, "stages": None}, scenario="ramp").stages[-1].rate == 50
    crowd = plan_for_spec(spec, {"users": None, "stages": None, "arrivals": ("constant", "")}, scenario="crowd")
    assert (crowd.users, crowd.arrivals, crowd.stages[-1].rate) == (0, "constant", 50)
    assert plan_for_spec(spec, {"data": "here"}, scenario="ramp").models[0].data == "here"


def test_a_model_of_the_spec_is_sent_to_as_the_options_say(spec):
    (load,) = plan_for_spec(spec, {}, model="a").models
    assert (load.model, load.batch_mix, load.slo.percentiles["p99"]) == ("a", ((1, 1.0),), 0.5)
    assert plan_for_spec(spec, {}, model="a").scenario == ""


def test_the_only_scenario_and_the_only_model_need_no_name(spec):
    spec.write_text(SPEC[: SPEC.index("    ramp")])
    assert plan_for_spec(spec, {}).scenario == "mixed"
    spec.write_text("version: 1\nmodels: [{name: a, source: a.onnx}]\n")
    assert [load.model for load in plan_for_spec(spec, {}).models] == ["a"]


def test_a_name_alone_promises_what_the_option_says():
    plan = plan_for_model("m", {"slo": Promises({"p99": 1.0}), "shape_mix": {"x": (((3, 4), 0.5), ((3, 5), 0.5)), "y": (((1,), 1.0),)}})
    assert (plan.url, plan.models[0].slo_from) == ("grpc://127.0.0.1:8001", "--slo")
    assert plan.models[0].shape_mix == (({"x": (3, 4), "y": (1,)}, 0.5), ({"x": (3, 5), "y": (1,)}, 0.5))
    assert plan_for_model("m", {}).models[0].slo_from == ""


def test_a_plan_travels_whole(spec):
    for name in ("mixed", "ramp", "crowd", "again"):
        plan = plan_for_spec(spec, {}, scenario=name)
        again = LoadPlan.from_json(plan.to_json())
        assert again.to_json() == plan.to_json()
        assert json.loads(plan.to_json())["scenario"] == name


@pytest.mark.parametrize(
    ("changes", "arguments", "given", "words"),
    [
        ({}, {}, {}, "has 4 scenarios: mixed, ramp, crowd, again"),
        ({}, {"scenario": "nope"}, {}, "has no scenario 'nope'"),
        ({}, {"model": "c"}, {}, "has no model 'c'"),
        ({}, {"scenario": "mixed"}, {"data": "x.npz"}, "--data: inputs are those of one model, and the scenario has 2"),
        ({}, {"scenario": "mixed"}, {"data": "x", "shape_mix": {"x": (((1,), 1.0),)}}, "--shape-mix and --data"),
        ({}, {"scenario": "ramp"}, {"duration_us": 5}, "stages have their own durations"),
        ({}, {"scenario": "crowd"}, {"arrivals": ("constant", "")}, "in a closed loop a request is sent when the one before was answered"),
        ({}, {"scenario": "mixed"}, {"arrivals": ("trace", "t"), "rate": 5.0}, "a trace says itself when each request is due"),
        ({}, {"scenario": "mixed"}, {"users": 100_001}, "more than the 100,000"),
        ({}, {"model": "a"}, {"shape_mix": {"x": (((1,), 1.0),) * 400, "z": (((1,), 1.0),) * 400}}, "more than 100,000 combinations"),
        ({"data/t.txt": "~nobody-here/t.txt"}, {"scenario": "again"}, {}, "the home folder in '~nobody-here/t.txt'"),
        ({"load:": "x:"}, {}, {}, "there is no key 'x'"),
    ],
)
def test_what_cannot_be_sent_is_said(spec, changes, arguments, given, words):
    text = SPEC
    for before, after in changes.items():
        text = text.replace(before, after)
    spec.write_text(text)
    with pytest.raises(InputError) as caught:
        plan_for_spec(spec, given, **arguments)
    assert words in str(caught.value)
    assert all(found.hint for found in caught.value.diagnostics)


def test_several_models_without_a_scenario_are_not_guessed(spec):
    spec.write_text(SPEC[: SPEC.index("load:")])
    with pytest.raises(InputError, match="has 2 models and no scenario: a, b"):
        plan_for_spec(spec, {})
    with pytest.raises(InputError, match="has no scenario 's'"):
        plan_for_spec(spec, {}, scenario="s")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m", "--scenario", "s"], "--scenario is of a spec, and 'm' is the name of a model"),
        (["m", "--model", "s"], "--model is of a spec"),
        (["spec.yaml", "--scenario", "s", "--model", "m"], "exclude one another"),
        (["gone.yaml"], "gone.yaml"),
        (["./gone"], "there is no such file"),
        (["m", "--batch-mix", "x"], "a batch is a whole number of rows"),
        (["m", "--shape-mix", "x=3xx4"], "'3xx4' is no shape"),
        (["m", "--shape-mix", "3x4"], "write NAME=3x48x320"),
        (["m", "--arrivals", "soon"], "'soon' are no arrivals"),
        (["m", "--slo", "p99=20"], "has no unit"),
        (["m", "--deadline", "0s"], "--deadline: it must be above 0"),
        (["m", "--duration", "0"], "--duration: it must be above 0"),
        (["m", "--rate", "1_000"], "'1_000' is no rate"),
        (["m", "--rate", "\u0661\u0660"], "'\u0661\u0660' is no rate"),
        (["m", "--find-max", "--users", "2"], "--find-max searches an open loop's rate"),
    ],
)
def test_options_that_say_nothing_are_exit_2(tritongen, arguments, words):
    done = tritongen("load", *arguments)
    assert (done.code, words in done.err) == (2, True), done.err


@pytest.mark.parametrize("given", [{}, {"slo": Promises({"p99": 9999.0})}])
def test_a_promise_that_could_not_be_missed_is_refused_with_all_others(tmp_path, given):
    path = tmp_path / "spec.yaml"
    path.write_text("""version: 1
triton: {release: "24.10"}
models: [{name: a, source: a.onnx, slo: {p99: 3s}}, {name: b, source: b.onnx, slo: {p50: 1s, p99: 2999ms}}, {name: c, source: c.onnx}]
load: {scenarios: {all: {models: {a: 1, b: 1, c: {slo: {max: 5s, p50: 1s}}}, deadline: 3s}}}
""")
    (tmp_path / "a.onnx").touch()
    with pytest.raises(InputError) as caught:
        plan_for_spec(path, given)
    found = [(diagnostic.code, diagnostic.model, diagnostic.message.split(" is ")[0]) for diagnostic in caught.value.diagnostics]
    expected = (
        [("a", "p99 within 9.999 s"), ("b", "p99 within 9.999 s"), ("c", "p99 within 9.999 s")] if given else [("a", "p99 within 3 s"), ("c", "max within 5 s")]
    )
    assert found == [("TG420", *each) for each in expected]
    assert "given up after 3 s" in caught.value.diagnostics[0].message
    assert all(load.slo for load in plan_for_spec(path, {**given, "deadline_us": 20_000_000}).models)
