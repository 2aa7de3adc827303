"""What an ensemble's author is told: where, what, and what to write. One mistake is one finding."""

from pathlib import Path

import pytest

from tritongen.check.contexts import load_lone_config
from tritongen.check.evaluate import evaluate_models, evaluate_path
from tritongen.modelconfig import parse_pbtxt
from tritongen.rules import ServerFacts
from tritongen.rules.ensemble_graph import build_graph, flow

MODEL = 'backend: "python"\nmax_batch_size: 8\ninput { name: "x" data_type: TYPE_FP32 dims: 4 }\noutput { name: "y" data_type: TYPE_FP32 dims: 4 }\n'
HEAD = 'platform: "ensemble"\nmax_batch_size: 8\ninput { name: "A" data_type: TYPE_FP32 dims: 4 }\noutput { name: "Z" data_type: TYPE_FP32 dims: 4 }\n'


def step(model, read, write, version="model_version: -1"):
    """One step with one input `x` and one output `y`, on a line of its own."""
    return f'step {{ model_name: "{model}" {version} input_map {{ key: "x" value: "{read}" }} output_map {{ key: "y" value: "{write}" }} }}\n'


def ensemble(*steps):
    return HEAD + "ensemble_scheduling {\n" + "".join(steps) + "}\n"


def findings(tmp_path, **configs):
    for name, text in configs.items():
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(text)
        if "python" in text:
            (tmp_path / name / "1/model.py").write_text("class TritonPythonModel:\n    def execute(self, requests): ...\n")
    return evaluate_path(tmp_path, ServerFacts())


@pytest.mark.parametrize(("written", "read"), [("scores", "Scores"), ("scores", "score"), ("mid", "other")])
def test_a_misspelt_tensor_is_one_finding_that_names_the_other(tmp_path, written, read):
    found = findings(tmp_path, a=MODEL, b=MODEL, e=ensemble(step("a", "A", written), step("b", read, "Z")))
    assert [diagnostic.code for diagnostic in found] == ["TG323"]
    assert f"did you mean '{written}'?" in found[0].message
    assert (found[0].location.line, found[0].location.path) == (7, str(tmp_path / "e/config.pbtxt"))


def test_exchanged_keys_and_values_are_recognised(tmp_path):
    exchanged = 'step { model_name: "a" model_version: -1 input_map { key: "A" value: "x" } output_map { key: "y" value: "Z" } }\n'
    head = HEAD.replace('"A"', '"x"')
    two = MODEL.replace("output", 'input { name: "w" data_type: TYPE_FP32 dims: 4 }\noutput', 1)
    found = findings(tmp_path, a=two, e=head + "ensemble_scheduling {\n" + exchanged + "}\n")
    assert 'write key: "x" value: "A"' in next(diagnostic.hint for diagnostic in found if "maps 'A'" in diagnostic.message)


def test_a_lone_config_is_told_of_version_zero_with_a_proviso_and_nothing_about_models(tmp_path):
    text = ensemble(step("nowhere", "A", "Z", version=""))
    found = [finding.diagnostic for finding in evaluate_models([load_lone_config(Path("config.pbtxt"), text.encode(), ServerFacts())])]
    mine = [diagnostic for diagnostic in found if diagnostic.code.startswith("TG32")]
    assert [diagnostic.code for diagnostic in mine] == ["TG326"]
    assert "unless the model has a folder 0" in mine[0].message
    assert mine[0].severity.value == "warning"


def test_steps_run_when_their_tensors_are_there_whatever_the_order_in_the_file():
    config = parse_pbtxt(ensemble(step("b", "M", "Z"), step("a", "A", "M")))
    assert list(flow(config)) == [("A", None), ("M", 1), ("Z", 0)]


def test_a_circle_is_told_apart_from_what_is_missing():
    graph = build_graph(parse_pbtxt(ensemble(step("a", "N", "M"), step("b", "M", "N"), step("c", "Q", "Z"))))
    assert graph.unwritten == ("Q",)
    assert graph.looped == ("M", "N")
    assert "Z" not in graph.ready
