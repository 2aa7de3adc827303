"""A spec, its render, the script that builds the plans, and the render after: what one says, the others understand."""

import sys
from pathlib import Path

import pytest
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

import networks
from running import A10G, H100, Site, shells

from tritongen.check.engine import CheckOptions, check
from tritongen.check.targets import find_targets
from tritongen.repository import apply_plan
from tritongen.rules import ServerFacts
from tritongen.workflow.rendering import plan_render

SPEC = """version: 1
triton: {{release: "{release}"}}
repository: model repository
models:
  - name: text
    source: m.onnx
    backend: tensorrt
    batching: {{max: 8}}
    instances: [{{kind: gpu}}]
    {more}
"""


@pytest.fixture
def site(tmp_path):
    networks.mlp(tmp_path / "m.onnx")
    return Site(tmp_path, dict(shells())["dash"])


def write(site, *, release="25.08", more=""):
    (site.root / "spec.yaml").write_text(SPEC.format(release=release, more=more))


def render(site, **spec):
    """Render the spec; the plan that was applied."""
    write(site, **spec)
    with plan_render(site.root / "spec.yaml") as rendering:
        apply_plan(rendering.plan)
    return rendering.plan


def said(site):
    found = check(find_targets([site.repository]), CheckOptions(ServerFacts(auto_complete=False)))
    return {finding.diagnostic.code: finding.diagnostic for finding in found if finding.diagnostic.code.startswith(("TG35", "TG365"))}


def test_a_plan_is_built_kept_found_stale_and_built_again(site):
    render(site)
    assert set(said(site)) == {"TG351"}
    assert "build_plans.sh" in said(site)["TG351"].hint
    run = site.run()
    assert (run.returncode, run.stderr) == (0, "")
    assert said(site) == {}
    assert not render(site).would_change
    first = site.plan("text").read_bytes()
    (call,) = site.calls()
    assert call["profiles"] == [{"--minShapes": {"x": [1, 8]}, "--optShapes": {"x": [8, 8]}, "--maxShapes": {"x": [8, 8]}}]
    # A setting of the server makes no plan another.
    render(site, more="response_cache: true")
    assert site.plan("text").read_bytes() == first
    assert said(site) == {}
    (change,) = render(site, more="tensorrt: {build: {builder_optimization_level: 5}}").changes
    assert change.reasons[0] == ("1/model.plan: is stale, and left out until it is built again: it was built with optimization level none, and 5 is asked for")
    assert not site.plan("text").exists()
    assert site.run().returncode == 0
    assert said(site) == {}


def test_a_repository_that_came_without_its_recipes_is_sent_for_them(site):
    render(site)
    site.artifacts.rename(site.root / "gone")
    assert said(site)["TG351"].hint.startswith(f"render the spec again, or bring {site.artifacts}, which a render wrote beside the repository; then build it")


def test_another_release_with_the_same_tensorrt_keeps_the_plan_and_another_tensorrt_does_not(site):
    site.version = "10.13.3.9"
    render(site, release="25.09")
    assert site.run().returncode == 0
    render(site, release="25.10")
    assert site.run().stdout.endswith("0 built, 0 failed\n")
    plan = site.plan("text").read_bytes()
    (change,) = render(site, release="25.11").changes
    assert "was built with TensorRT 10.13.3.9, and release 25.11 has 10.14.1.48" in change.reasons[0]
    site.plan("text").write_bytes(plan)
    assert "was built with TensorRT 10.13.3.9, and release 25.11 has 10.14.1.48" in said(site)["TG358"].message


def test_each_gpu_gets_its_plan_on_its_machine_and_the_repository_goes_round(site):
    render(site, more='tensorrt: {build: {compute_capabilities: ["8.6", "9.0"]}}')
    missing = [finding.diagnostic.message for finding in check(find_targets([site.repository]), CheckOptions()) if finding.diagnostic.code == "TG351"]
    assert len(missing) == 2
    assert "which GPUs of compute capability 8.6 load" in missing[0]
    for site.gpus, size in ((A10G, "1000"), (H100, "2000")):
        site.environment = {"FAKE_BYTES": size}
        assert site.run().returncode == 0
    assert said(site) == {}
    assert site.run("--check").returncode == 0
    swapped = sorted(path for path in site.plan("text").parent.glob("*plan*"))
    first, second = (path.read_bytes() for path in swapped)
    swapped[0].write_bytes(second)
    swapped[1].write_bytes(first)
    assert "is not the file that was built" in said(site)["TG359"].message


def test_a_config_that_was_edited_after_the_render_is_held_against_the_profiles(site):
    render(site, more="tensorrt: {cuda_graphs: true, profiles: [{batch: 1}, {batch: 8}]}")
    assert set(said(site)) == {"TG351"}
    config = site.repository / "text/config.pbtxt"
    config.write_text(config.read_text().replace("max_batch_size: 8", "max_batch_size: 32"))
    assert said(site)["TG365"].message == "max_batch_size is 32, and the plan takes batches of at most 8"


def test_an_overlay_that_leaves_sizes_to_a_profile_that_no_copy_uses_is_refused(site, tritongen):
    nodes, ends = [helper.make_node("Tanh", ["x"], ["y"])], [[(name, TensorProto.FLOAT, ["N", "S"])] for name in ("x", "y")]
    networks.save(site.root / "m.onnx", nodes, *ends)
    buckets = "tensorrt: {profiles: [{shapes: {x: {min: [1], opt: [8], max: [16]}}}, {shapes: {x: {min: [17], opt: [32], max: [32]}}}]}"
    write(site, more=f"{buckets}\n    config: {{instance_group: [{{kind: KIND_GPU, count: 1}}]}}")
    spec = site.root / "spec.yaml"
    spec.write_text(spec.read_text().replace("    instances: [{kind: gpu}]\n", ""))
    refused = tritongen("render", spec, "--dry-run")
    assert refused.code == 2
    assert "error TG365 (model text): instance group 1 lists no profile, and of the 2 profiles of the plan it then uses number 0 alone" in refused.err
    assert "requests of sizes that only another profile takes fail" in refused.err


def test_a_cuda_graph_of_the_overlay_is_judged_alike_by_a_render_and_a_check(site, tritongen):
    nodes, ends = [helper.make_node("Tanh", ["x"], ["y"])], [[(name, TensorProto.FLOAT, ["N", "S"])] for name in ("x", "y")]
    networks.save(site.root / "m.onnx", nodes, *ends)
    graphs = "[{batch_size: 8, input: {x: {dim: [32]}}}, {batch_size: 8, input: {x: {dim: [33]}}}]"
    write(site, more=f"shapes: {{x: {{min: [1], opt: [8], max: [32]}}}}\n    config: {{optimization: {{cuda: {{graphs: true, graph_spec: {graphs}}}}}}}")
    rendered, checked = tritongen("render", site.root / "spec.yaml"), tritongen("check", site.repository)
    assert rendered.code == 0
    (line,), (again,) = ([each for each in text.splitlines() if "TG366" in each] for text in (rendered.err, checked.out))
    assert line.partition("warning TG366 (model text): ")[2] == again.partition("warning TG366: ")[2]
    assert line.endswith("graph_spec 2 is for 'x' [33], and the plan takes 'x' [1 to 32]")


def test_cuda_graphs_that_the_release_never_uses_are_said_by_a_render_and_a_check(site, tritongen):
    networks.mlp(site.root / "m.onnx", batch=2)
    for release, times in (("25.08", 1), ("26.08", 0)):
        write(site, release=release, more="tensorrt: {cuda_graphs: true}")
        spec = site.root / "spec.yaml"
        spec.write_text(spec.read_text().replace("{max: 8}", "none"))
        rendered, checked = tritongen("render", spec), tritongen("check", site.repository)
        said = [[line.partition("TG362")[2] for line in text.splitlines() if "TG362" in line] for text in (rendered.err, checked.out)]
        assert [len(lines) for lines in said] == [times, times]
        assert not times or said[0][0].endswith(said[1][0])


def test_a_repository_without_plans_has_no_script_any_more(site, tritongen):
    render(site)
    assert site.script.exists()
    write(site)
    spec = site.root / "spec.yaml"
    spec.write_text(spec.read_text().replace("backend: tensorrt", "backend: onnxruntime"))
    asked = tritongen("render", spec, "--check")
    assert asked.code == 1
    assert "remove " in asked.out
    assert tritongen("render", spec).code == 0
    assert not site.script.exists()
    assert tritongen("render", spec, "--check").code == 0


def test_a_hand_edit_of_the_script_alone_is_a_conflict(site, tritongen):
    render(site)
    site.script.write_text(site.script.read_text() + "reboot\n")
    asked = tritongen("render", site.root / "spec.yaml", "--dry-run")
    assert asked.code == 1
    assert "was edited by hand" in asked.out
    done = tritongen("render", site.root / "spec.yaml")
    assert done.code == 2
    assert "TG043" in done.err
    assert tritongen("render", site.root / "spec.yaml", "--force").code == 0
    assert "reboot" not in site.script.read_text()


def test_an_input_that_trtexec_cannot_be_told_of_is_said_when_it_is_rendered(site):
    nodes, ends = [helper.make_node("Tanh", ["a,b"], ["y"])], [[(name, TensorProto.FLOAT, ["N", 8])] for name in ("a,b", "y")]
    networks.save(site.root / "m.onnx", nodes, *ends)
    write(site)
    with plan_render(site.root / "spec.yaml") as rendering:
        apply_plan(rendering.plan)
    (finding,) = [finding for finding in rendering.findings if finding.code == "TG184"]
    assert "input 'a,b'" in finding.message
    run = site.run()
    assert run.returncode == 1
    assert "build it on the GPU that serves it with `tritongen build`, or give the input another name" in run.stderr
