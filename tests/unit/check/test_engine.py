"""Which findings a run gives, for which models, in which order."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from check_models import CONFIG, no_batching, rule

from tritongen.check.engine import CheckOptions, check
from tritongen.check.selection import Selection, make_selection
from tritongen.check.targets import find_targets
from tritongen.errors import InputError
from tritongen.releases import find_release
from tritongen.rules import RULES, Consequence, Finding, ServerFacts

BATCHING = rule("TG262", no_batching)


def run(*paths, rules=(BATCHING,), server=None, selection=None):
    return check(find_targets(paths), CheckOptions(server or ServerFacts(), selection or Selection(), tuple(rules)))


def codes(findings):
    return [finding.diagnostic.code for finding in findings]


def test_a_finding_says_model_place_consequence_and_severity(add_model, tmp_path):
    folder = add_model()
    (finding,) = run(tmp_path / "repository")
    diagnostic = finding.diagnostic
    assert (diagnostic.code, finding.name, finding.consequence, diagnostic.severity.value) == ("TG262", "rule-tg262", "ignored", "warning")
    assert (diagnostic.model, str(diagnostic.location)) == ("m", f"{folder}/config.pbtxt:3:17")
    assert diagnostic.location.text == "max_batch_size: 8"


def test_findings_come_by_model_and_line(add_model, tmp_path):
    def backwards(context):
        yield Finding("last", ("output", 0))
        yield Finding("first", ("name",))

    add_model("b")
    add_model("a")
    found = run(tmp_path / "repository", rules=[rule("TG262", backwards)])
    assert [(finding.diagnostic.model, finding.diagnostic.message) for finding in found] == [("a", "first"), ("a", "last"), ("b", "first"), ("b", "last")]


def test_equal_findings_are_said_once(add_model, tmp_path):
    add_model()
    twice = rule("TG262", lambda context: [*no_batching(context), *no_batching(context)])
    assert len(run(tmp_path / "repository", rules=[twice])) == 1


@pytest.mark.parametrize(
    ("need", "known"),
    [("gpus", ServerFacts(gpus=0)), ("release", ServerFacts(release=find_release("25.08")))],
)
def test_rules_are_silent_about_what_nobody_said(add_model, tmp_path, need, known):
    add_model()
    needing = rule("TG262", no_batching, needs=frozenset({"config", need}))
    assert run(tmp_path / "repository", rules=[needing]) == ()
    assert codes(run(tmp_path / "repository", rules=[needing], server=known)) == ["TG262"]


def test_a_lone_config_is_asked_only_what_it_can_tell(add_model):
    folder = add_model()
    about_files = rule("TG263", no_batching, needs=frozenset({"config", "folder"}))
    assert codes(run(folder / "config.pbtxt", rules=[BATCHING, about_files])) == ["TG262"]
    assert codes(run(folder, rules=[BATCHING, about_files])) == ["TG262", "TG263"]


def test_a_config_that_does_not_parse_is_asked_for_its_layout_only(add_model, tmp_path):
    add_model(config=CONFIG.format(name="m").replace("input {", "inputs {"))
    layout = rule("TG225", lambda _: [Finding("layout")], needs=frozenset({"folder"}))
    versions = rule("TG241", lambda _: [Finding("policy")])
    assert codes(run(tmp_path / "repository", rules=[BATCHING, layout, versions])) == ["TG225", "TG208"]


def across(contexts):
    """Every ensemble whose step is not there."""
    names = {context.name for context in contexts}
    for context in contexts:
        for step in context.config.ensemble_scheduling.step:
            if step.model_name not in names:
                yield Finding(f"no model {step.model_name}", ("ensemble_scheduling",), model=context.name)


ACROSS = rule("TG321", None, check_all=across)  # type: ignore[arg-type]
ENSEMBLE = 'name: "e"\nplatform: "ensemble"\nensemble_scheduling {{ step {{ model_name: "{step}" model_version: -1 }} }}\n'


def test_rules_across_models_see_the_whole_repository(add_model, tmp_path):
    add_model("e", ENSEMBLE.format(step="missing"), onnx=None)
    add_model("f", ENSEMBLE.format(step="m").replace('"e"', '"f"'), onnx=None)
    add_model("m")
    found = run(tmp_path / "repository", rules=[ACROSS])
    assert [(finding.diagnostic.model, finding.diagnostic.message) for finding in found] == [("e", "no model missing")]


def test_an_ensembles_folder_alone_finds_its_steps_beside_it(add_model):
    folder = add_model("e", ENSEMBLE.format(step="m"), onnx=None)
    add_model("m", CONFIG.format(name="m").replace("max_batch_size: 8", "max_batch_size: 4"))
    assert run(folder, rules=[ACROSS]) == ()
    assert run(folder, rules=[BATCHING]) == (), "what is wrong with a step is not what was asked"


def test_an_ensembles_folder_alone_is_no_proof_that_a_step_is_missing(add_model):
    assert run(add_model("e", ENSEMBLE.format(step="elsewhere"), onnx=None), rules=[ACROSS]) == ()


def test_nothing_is_concluded_from_a_step_that_does_not_parse(add_model, tmp_path):
    def about_steps(contexts):
        yield Finding("the step has no outputs", model="e")

    add_model("e", ENSEMBLE.format(step="m"), onnx=None)
    add_model("m", "outputs {")
    found = run(tmp_path / "repository", rules=[rule("TG321", None, check_all=about_steps)])
    assert {finding.diagnostic.model for finding in found} == {"m"}


def test_one_name_in_two_repositories_is_found_in_both(add_model, tmp_path):
    add_model("m", repository="a")
    add_model("m", repository="b")
    add_model("n", repository="b")
    found = [finding.diagnostic for finding in run(tmp_path / "a", tmp_path / "b", rules=[one for one in RULES if one.code == "TG229"])]
    assert [(diagnostic.code, diagnostic.model, str(diagnostic.location)) for diagnostic in found] == [
        ("TG229", "m", f"{tmp_path}/{name}/m/config.pbtxt:1:7") for name in ("a", "b")
    ]
    assert str(tmp_path / "b/m") in found[0].message


def test_one_name_in_two_repositories_is_found_where_one_config_does_not_parse(add_model, tmp_path):
    """Triton compares the names of folders before it reads any config."""
    add_model(repository="a")
    add_model("m", "inputs { }", repository="b")
    found = check(find_targets([tmp_path / "a", tmp_path / "b"]), CheckOptions(rules=tuple(one for one in RULES if one.code == "TG229")))
    assert [Path(one.diagnostic.location.path).parts[-3] for one in found if one.diagnostic.code == "TG229"] == ["a", "b"]


def test_a_place_of_a_template_in_a_string_is_a_warning(add_model):
    (found,) = run(add_model(config=CONFIG.format(name="m").replace('"onnxruntime_onnx"', '"{{ .Values.platform }}"')), rules=())
    assert (found.diagnostic.code, found.diagnostic.severity.value, found.diagnostic.location.line, found.consequence) == ("TG205", "warning", 2, "misbehaves")
    assert found.diagnostic.model == "m"


def test_codes_are_selected_and_ignored(add_model, tmp_path):
    add_model()
    other = rule("TG371", no_batching)
    for select, ignore, left in (
        (["TG26"], [], ["TG262"]),
        ([], ["TG26", "tg37"], []),
        (["TG2", "TG3"], ["TG371"], ["TG262"]),
    ):
        selected = frozenset(code for word in select for code in ("TG262", "TG371") if code.startswith(word))
        ignored = frozenset(code for word in ignore for code in ("TG262", "TG371") if code.startswith(word.upper()))
        assert codes(run(tmp_path / "repository", rules=[BATCHING, other], selection=Selection(selected or None, ignored))) == left


def test_a_selection_takes_codes_beginnings_and_names():
    assert "TG229" in make_selection(["name-in-two-repositories"], [])
    assert "TG208" not in make_selection(["TG229"], [])
    assert {"TG208", "TG211"} <= {code for code in ("TG208", "TG211", "TG229") if code in make_selection(["TG2"], ["tg229"])}
    assert "TG229" not in make_selection(["TG2"], ["tg229"])


def test_words_that_stand_for_nothing_are_all_said_with_the_closest():
    with pytest.raises(InputError) as caught:
        make_selection(["TG999"], ["unkown-field", "qqqq"])
    hints = [diagnostic.hint for diagnostic in caught.value.diagnostics]
    assert len(hints) == 3
    assert hints[1] == "did you mean unknown-field?"


def test_a_link_to_nowhere_beside_the_models_is_said_to_take_them_all(add_model, tmp_path):
    add_model()
    (tmp_path / "repository/old").symlink_to(tmp_path / "gone")
    (finding,) = run(tmp_path / "repository", rules=RULES)
    assert (finding.diagnostic.code, finding.consequence, finding.diagnostic.location.path) == ("TG223", "refused", str(tmp_path / "repository/old"))
    assert "loads none of its models" in finding.diagnostic.consequence


def test_of_a_model_behind_a_link_out_nothing_else_is_said(add_model, tmp_path):
    steps = 'step { model_name: "other" model_version: -1 input_map { key: "a" value: "x" } output_map { key: "b" value: "y" } }'
    ensemble = f"""platform: "ensemble"
input {{ name: "x" data_type: TYPE_FP32 dims: [ 8 ] }}
output {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }}
ensemble_scheduling {{ {steps} }}
"""
    add_model("ensemble", ensemble, onnx=None)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repository/other").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "note").write_text("x")
    (tmp_path / "repository/README").symlink_to(tmp_path / "note")
    for auto_complete in (True, False):
        found = run(tmp_path / "repository", rules=RULES, server=ServerFacts(auto_complete=auto_complete))
        assert [(finding.diagnostic.code, finding.diagnostic.model) for finding in found] == [("TG076", "other")]


def test_a_config_that_cannot_be_read_is_said_and_no_rule_is_asked(add_model, tmp_path):
    for name in ("pipe", "folder", "loop", "outside"):
        (add_model(name) / "config.pbtxt").unlink()
    os.mkfifo(tmp_path / "repository/pipe/config.pbtxt")
    (tmp_path / "repository/folder/config.pbtxt").mkdir()
    (tmp_path / "repository/loop/config.pbtxt").symlink_to("config.pbtxt")
    (tmp_path / "secret.pbtxt").write_text(CONFIG.format(name="outside"))
    (tmp_path / "repository/outside/config.pbtxt").symlink_to(tmp_path / "secret.pbtxt")
    found = {finding.diagnostic.model: finding.diagnostic for finding in run(tmp_path / "repository")}
    assert {model: diagnostic.code for model, diagnostic in found.items()} == {"pipe": "TG075", "folder": "TG075", "loop": "TG075", "outside": "TG076"}
    assert found["pipe"].severity.value == "error"
    assert found["outside"].severity.value == "warning"
    assert "nothing about this model was checked" in found["outside"].consequence


def test_a_model_folder_may_be_linked_from_within_the_repository(add_model, tmp_path):
    add_model("shared")
    (tmp_path / "repository/m").symlink_to("shared")
    assert [finding.diagnostic.model for finding in run(tmp_path / "repository")] == ["m", "shared"]


def test_a_worse_place_has_its_own_consequence(add_model, tmp_path):
    add_model()
    refused = rule("TG262", lambda context: [replace(finding, consequence=Consequence.REFUSED) for finding in no_batching(context)])
    (finding,) = run(tmp_path / "repository", rules=[refused])
    assert (finding.consequence, finding.diagnostic.severity.value) == ("refused", "error")


@pytest.mark.parametrize("size", [500_000, 20_000_000])
def test_a_config_too_large_to_be_read_is_no_error_since_triton_may_load_it(add_model, tmp_path, size):
    text = CONFIG.format(name="m") + "#" * size
    folder = add_model("m", text)
    (folder / "1/model.onnx").unlink()
    (tmp_path / "config.pbtxt").write_text(text)
    found = run(tmp_path / "repository", tmp_path / "config.pbtxt", rules=RULES)
    assert codes(found) == ["TG076", "TG076"]
    assert {finding.diagnostic.severity.value for finding in found} == {"warning"}
    assert len({finding.diagnostic.message for finding in found}) == 1, "one rule for both"
    assert all("nothing about this model was checked" in finding.diagnostic.consequence for finding in found)
