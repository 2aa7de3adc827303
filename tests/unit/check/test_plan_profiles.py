"""What `check` says of a plan's config that somebody edited: the profiles of the plan, which stand beside the repository, do not follow."""

from pathlib import PurePosixPath

import pytest

from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import find_targets
from tritongen.manifest import Builder, make_manifest, manifest_path, print_manifest
from tritongen.recipe import RECIPES, PlanFile, PlanRecipe, Profile, Span, print_recipes
from tritongen.repository import file_sha256
from tritongen.rules import ServerFacts

CONFIG = """platform: "tensorrt_plan"
max_batch_size: 8
input { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }
instance_group { kind: KIND_GPU profile: "0" profile: "1" }
"""
GROUP = 'profile: "0" profile: "1" '
SHORT, LONG = (Profile({"x": Span((1, low), (4, high), (8, high))}) for low, high in ((1, 16), (17, 64)))
ALIKE = Profile({"x": Span((1, 1), (8, 16), (8, 16))})


def recipe(*profiles, version=1):
    onnx = PurePosixPath("model.onnx")
    return PlanRecipe("m", version, (PlanFile("model.plan"),), onnx, {onnx: "ab" * 32}, profiles, release="25.08")


@pytest.fixture
def said(tmp_path):
    """Of a repository with this config and these recipes, all of whose plans are built: what is wrong with their profiles, by place."""

    def ask(config, *recipes, auto_complete=True):
        for each in recipes:
            plan = tmp_path / "r/m" / str(each.version) / "model.plan"
            plan.parent.mkdir(parents=True)
            plan.write_bytes(b"ftrt" + bytes(20) + bytes((10, 13, 2, 6)) + b"rest")
            manifest = tmp_path / "r.artifacts/m" / manifest_path(each.version, "model.plan")
            manifest.parent.mkdir(parents=True)
            manifest.write_text(print_manifest(make_manifest(each, file_sha256(plan), Builder("tensorrt", "10.13.2.6"))))
        (tmp_path / "r/m/config.pbtxt").write_text(config)
        (tmp_path / "r.artifacts/m" / RECIPES).write_text(print_recipes(recipes))
        found = [each.diagnostic for each in check(find_targets([tmp_path / "r"]), CheckOptions(ServerFacts(auto_complete=auto_complete)))]
        return [each for each in found if each.code.startswith("TG35") or each.code in ("TG365", "TG366")]

    return ask


def test_what_a_render_writes_is_fine(said):
    assert said(CONFIG, recipe(SHORT, LONG)) == []


@pytest.mark.parametrize(
    ("was", "now", "line", "severity", "message", "follows"),
    [
        (
            'profile: "1"',
            'profile: "2"',
            5,
            "error",
            "instance group 1 uses the profile 2, and the plan has 2 profiles, numbers 0 to 1, and no other",
            "Triton refuses to load the model",
        ),
        ("size: 8", "size: 16", 2, "error", "max_batch_size is 16, and the plan takes batches of at most 8", "Triton refuses to load the model"),
        ("dims: [ -1 ] }\noutput", "dims: [ 80 ] }\noutput", 3, "error", "input 'x' has the dims [80], and the plan takes [1 to 16]", "Triton refuses"),
        ("dims: [ -1 ] }\noutput", "dims: [ 8, 8 ] }\noutput", 3, "error", "input 'x' has the dims [8, 8], and the plan takes [1 to 16]", "Triton refuses"),
        (GROUP, "", 5, "error", "lists no profile, and of the 2 profiles of the plan it then uses number 0 alone", "only another profile takes fail"),
        (
            GROUP,
            f"{GROUP}}}\noptimization {{ cuda {{ graphs: true graph_spec {{ batch_size: 8 input {{ key: 'x' value {{ dim: [ 65 ] }} }} }} }}",
            6,
            "warning",
            "graph_spec 1 is for 'x' [65], and the plan takes 'x' [1 to 16] or 'x' [17 to 64]",
            "Triton logs that it captures no graph, and launches kernel by kernel",
        ),
        (
            GROUP,
            f"{GROUP}}}\nmodel_warmup {{ name: 'w' batch_size: 1 inputs {{ key: 'x' value {{ data_type: TYPE_FP32 dims: [ 65 ] zero_data: true }} }}",
            6,
            "error",
            "the warmup sample 'w' gives 'x' the dims [65], and the plan takes [1 to 16] or [17 to 64]",
            "Triton refuses the model",
        ),
    ],
    ids=["number", "batch", "dims", "rank", "unlisted", "graph", "sample"],
)
def test_an_edit_that_the_profiles_do_not_take_is_said_where_it_stands(said, was, now, line, severity, message, follows):
    assert CONFIG.count(was) == 1
    (found,) = said(CONFIG.replace(was, now), recipe(SHORT, LONG))
    assert (found.code, found.location.line, found.severity.value) == ("TG366" if "graph" in now else "TG365", line, severity)
    assert message in found.message
    assert follows in found.consequence


def test_all_of_it_is_said_at_once_and_once_for_all_versions(said):
    edited = CONFIG.replace("size: 8", "size: 9").replace('profile: "1"', 'profile: "7"').replace("dims: [ -1 ] }\noutput", "dims: [ 17 ] }\noutput")
    found = said(edited + "version_policy { all { } }\n", recipe(SHORT, LONG), recipe(SHORT, LONG, version=2))
    assert sorted(each.location.line for each in found) == [2, 3, 5]


def test_sizes_that_every_profile_takes_may_be_stated(said):
    exact = CONFIG.replace("dims: [ -1 ] }\noutput", "dims: [ 4, 4 ] reshape { shape: [ 16 ] } }\noutput")
    graph = 'optimization { cuda { graphs: true graph_spec { batch_size: 8 input { key: "x" value { dim: [ 16 ] } } } } }\n'
    assert said(exact + graph, recipe(SHORT, ALIKE)) == []


def test_a_graph_needs_sizes_that_one_profile_takes_together(said):
    small, large = (Profile({name: Span((1, size), (1, size), (8, size)) for name in "xz"}) for size in (4, 8))
    graph = "graph_spec { batch_size: 8 input { key: 'x' value { dim: [ 4 ] } } input { key: 'z' value { dim: [ 8 ] } } } graph_spec { batch_size: 1 }"
    config = CONFIG.replace("output", 'input { name: "z" data_type: TYPE_FP32 dims: [ -1 ] }\noutput') + f"optimization {{ cuda {{ graphs: true {graph} }} }}\n"
    (found,) = said(config, recipe(small, large))
    assert found.message == "graph_spec 1 is for 'x' [4], 'z' [8], and the plan takes 'x' [4], 'z' [4] or 'x' [8], 'z' [8]"


@pytest.mark.parametrize(
    ("x", "z", "message"),
    [
        ([16], [3, 4], None),
        ([33], [3, 4], "graph_spec 1 is for 'x' [33], 'z' [3, 4], and the plan takes 'x' [1 to 32], 'z' [3, 4]"),
        ([16], [3, 5], "graph_spec 1 is for 'x' [16], 'z' [3, 5], and the plan takes 'x' [1 to 32], 'z' [3, 4]"),
        ([16], None, "graph_spec 1 is for 'x' [16], and the plan takes 'x' [1 to 32], 'z' [3, 4]"),
        (None, None, None),
    ],
)
def test_a_graph_has_sizes_of_inputs_without_a_profile_too(said, x, z, message):
    sizes = " ".join(f"input {{ key: '{name}' value {{ dim: {dims} }} }}" for name, dims in (("x", x), ("z", z)) if dims)
    config = CONFIG.replace("size: 8", "size: 0").replace(GROUP, "").replace("output", 'input { name: "z" data_type: TYPE_FP32 dims: [ 3, 4 ] }\noutput')
    found = said(f"{config}optimization {{ cuda {{ graphs: true graph_spec {{ {sizes} }} }} }}\n", recipe(Profile({"x": Span((1,), (8,), (32,))})))
    assert [each.message for each in found] == ([message] if message else [])


def test_a_graph_of_a_plan_without_profiles_has_its_sizes(said):
    config = CONFIG.replace("size: 8", "size: 0").replace(GROUP, "").replace("[ -1 ]", "[ 2, 16 ]")
    graphs = "graph_spec { input { key: 'x' value { dim: [ 2, 16 ] } } } graph_spec { input { key: 'x' value { dim: [ 2, 17 ] } } }"
    (found,) = said(f"{config}optimization {{ cuda {{ graphs: true {graphs} }} }}\n", recipe())
    assert found.message == "graph_spec 2 is for 'x' [2, 17], and the plan takes 'x' [2, 16]"


def test_a_plan_with_shape_tensors_has_no_graphs(said):
    (found,) = said(
        CONFIG + "optimization { cuda { graphs: true } }\n", recipe(*(Profile(each.shapes, {"size": Span((1,), (2,), (3,))}) for each in (SHORT, LONG)))
    )
    assert (found.code, found.location.line) == ("TG366", 6)
    assert "the plan has shape tensors, 'size', and Triton captures no CUDA graph of such a plan" in found.message


def test_a_group_without_a_list_is_only_slower_where_the_first_profile_takes_all(said):
    (found,) = said(CONFIG.replace(GROUP, ""), recipe(SHORT, ALIKE))
    assert (found.severity.value, found.consequence) == ("advice", "every batch runs by the kernels of profile 0")
    assert found.hint == 'write `profile: ["0", "1"]`'


def test_without_auto_complete_a_larger_batch_is_cut(said):
    (found,) = said(CONFIG.replace("size: 8", "size: 16"), recipe(SHORT, LONG), auto_complete=False)
    assert (found.severity.value, found.consequence) == ("warning", "Triton takes 8 in its place")


def test_a_plan_without_profiles_takes_no_batches(said):
    (found,) = said(CONFIG.replace(GROUP, ""), recipe())
    assert found.message == "max_batch_size is 8, and no input of the plan has a variable size, that of the batch neither"


def test_it_is_said_before_the_plan_is_built_and_by_the_command(said, tmp_path, tritongen):
    said(CONFIG.replace("size: 8", "size: 16"), recipe(SHORT, LONG))
    (tmp_path / "r/m/1/model.plan").unlink()
    result = tritongen("check", tmp_path / "r")
    assert result.code == 1
    assert "TG365: max_batch_size is 16, and the plan takes batches of at most 8" in result.out + result.err
