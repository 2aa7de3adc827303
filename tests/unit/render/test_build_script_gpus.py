"""The script that builds plans: for which GPU, by which TensorRT, and what of an earlier build is good."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

from running import A10G, H100, recipe

from tritongen.recipe import PlanFile
from tritongen.repository import file_sha256
from tritongen.staleness import LoadedBy, stale

BOTH = (PlanFile("model.plan.86", "8.6", "timing.86.cache"), PlanFile("model.plan.90", "9.0", "timing.90.cache"))


def test_of_several_kinds_of_gpus_the_plan_of_this_one_is_built_and_the_others_are_named(site):
    site.place(recipe(plans=BOTH))
    run = site.run()
    assert (run.returncode, run.stderr) == (0, "")
    assert "model.plan.90: is for GPUs of compute capability 9.0, and it is not there; build it where one serves the model" in run.stdout
    assert "for other GPUs: 1 not there or stale" in run.stdout
    assert site.plan(name="model.plan.86").exists()
    assert not site.plan(name="model.plan.90").exists()
    site.gpus = H100
    run = site.run()
    assert run.returncode == 0
    assert site.manifest(name="model.plan.90").builder.compute_capability == "9.0"
    assert site.manifest(name="model.plan.86").builder.compute_capability == "8.6"
    assert "for other GPUs" not in run.stdout
    assert sorted(path.name for path in (site.artifacts / "m").glob("timing*")) == ["timing.86.cache", "timing.90.cache"]


def test_a_machine_with_both_kinds_builds_each_plan_on_its_own_gpu(site):
    site.gpus = f"{A10G}\n{H100}\n{H100.replace('bbbb', 'cccc')}"
    site.place(recipe(plans=BOTH))
    assert site.run().stdout.endswith("2 built, 0 failed\n")
    assert [b"GPU-aaaa" in site.plan(name="model.plan.86").read_bytes(), b"GPU-bbbb" in site.plan(name="model.plan.90").read_bytes()] == [True, True]


def test_one_plan_for_a_machine_with_several_kinds_says_who_can_load_it(site):
    site.gpus = f"{A10G}\n{A10G.replace('aaaa', 'dddd')}\n{H100}"
    site.place(recipe())
    words = 'warning: this machine also has NVIDIA H100, "80" GB\\HBM3 (9.0), and the plan is for NVIDIA A10G (8.6): Triton refuses to load it there.'
    for _ in range(2):
        run = site.run()
        assert (run.returncode, run.stderr.count(words)) == (0, 1)
        assert "tensorrt.build.compute_capabilities" in run.stderr
    site.place(recipe(hardware_compatibility="ampere_plus"))
    assert (site.run().returncode, site.run().stderr) == (0, "")


def test_a_plan_is_built_on_the_gpu_that_serves_the_model(site):
    site.gpus = f"{A10G}\n{H100}\n{H100.replace('bbbb', 'cccc')}"
    site.place(recipe(gpus=(1,)), recipe("other"))
    run = site.run()
    assert run.returncode == 0
    assert (site.manifest().builder.compute_capability, b"GPU-bbbb" in site.plan().read_bytes()) == ("9.0", True)
    assert "model m" not in run.stderr
    assert site.manifest("other").builder.compute_capability == "8.6"
    site.place(recipe(gpus=(0,)))
    assert "it was built on a GPU of compute capability 9.0, and this one has 8.6" in site.run("--check").stdout


def test_gpus_of_several_kinds_that_serve_a_model_with_one_plan_are_said(site):
    site.gpus = f"{A10G}\n{A10G.replace('aaaa', 'dddd')}\n{H100}"
    site.place(recipe(gpus=(1, 2)))
    run = site.run()
    assert (run.returncode, b"GPU-dddd" in site.plan().read_bytes()) == (0, True)
    assert 'warning: instances name NVIDIA H100, "80" GB\\HBM3 (9.0), too, and the plan is for NVIDIA A10G (8.6)' in run.stderr
    assert "Name GPUs of one kind in instances.gpus, or each kind in tensorrt.build.compute_capabilities" in run.stderr


def test_a_gpu_that_serves_a_model_and_is_not_there_is_said_and_nothing_is_built_for_another(site):
    site.place(recipe(gpus=(0, 1, 10)), recipe("other"))
    run = site.run()
    assert (run.returncode, site.plan().exists(), site.plan("other").exists()) == (3, False, True)
    assert "model m, version 1: error: instances name GPU 1, 10, and this machine has 1, numbered from 0: Triton refuses to load the model." in run.stderr
    site.gpus = None
    assert site.run().returncode == 0


def test_of_several_plans_those_are_built_whose_gpus_serve_the_model(site):
    site.gpus = f"{A10G}\n{H100}"
    site.place(recipe(plans=BOTH, gpus=(1,)))
    run = site.run()
    assert (run.returncode, site.plan(name="model.plan.86").exists(), site.plan(name="model.plan.90").exists()) == (0, False, True)
    site.place(recipe(plans=BOTH[:1], gpus=(1,)))
    assert "no plan is for GPU 1 (instances.gpus), of compute capability 9.0" in site.run().stderr


def test_a_gpu_that_no_plan_is_for_is_said(site):
    site.gpus = A10G.replace("8.6", "7.5")
    site.place(recipe(plans=BOTH))
    site.place(recipe(plans=BOTH), recipe("other"))
    words = "model m, version 1: error: no plan is for this machine, whose compute capability is 7.5; add it to tensorrt.build"
    run = site.run()
    assert (run.returncode, words in run.stderr) == (3, True)
    assert site.plan("other").exists()
    assert site.run("--check").returncode == 3


@pytest.mark.parametrize(
    ("gpus", "environment", "code", "words"),
    [
        (A10G.replace("8.6", "[N/A]"), {}, 3, "does not say what compute capability a GPU has"),
        (f"{A10G}\n{H100.replace('9.0', 'abc')}", {}, 3, '"GPU-bbbb, abc, '),
        (None, {"COMPUTE_CAPABILITY": "abc"}, 2, 'COMPUTE_CAPABILITY is "abc", and a compute capability is such as 8.6'),
        (None, {"COMPUTE_CAPABILITY": "86"}, 2, "is such as 8.6"),
    ],
)
def test_a_compute_capability_that_is_none_is_refused(site, gpus, environment, code, words):
    site.gpus, site.environment = gpus, environment
    site.place(recipe())
    run = site.run()
    assert (run.returncode, words in run.stderr) == (code, True), run.stderr
    assert not site.plan().exists()


def test_without_nvidia_smi_one_plan_is_built_and_several_need_a_word(site):
    site.gpus = None
    site.place(recipe())
    assert site.run().returncode == 0
    assert site.manifest().builder.compute_capability == ""
    site.place(recipe(plans=BOTH))
    assert "which plan is for this machine is not known without nvidia-smi; say it with COMPUTE_CAPABILITY=..." in site.run().stderr
    site.environment["COMPUTE_CAPABILITY"] = "9.0"
    assert site.run().returncode == 0
    assert site.manifest(name="model.plan.90").builder.compute_capability == "9.0"


def test_a_container_without_gpus_is_said(site):
    site.gpus = ""
    site.place(recipe())
    run = site.run()
    assert run.returncode == 3
    assert "sees no GPU (No devices were found); give the container its GPUs (docker run --gpus all ...)" in run.stderr


def test_the_chosen_gpus_are_those_that_are_asked_about(site):
    site.environment = {"CUDA_VISIBLE_DEVICES": "1"}
    site.place(recipe())
    variables = site.variables()
    smi = Path(variables["NVIDIA_SMI"])
    smi.write_text(f"#!/bin/sh\n[ \"$1 $2\" = '-i 1' ] && echo '{A10G}'\n")
    run = subprocess.run(site.command(), env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("version", "environment", "words"),
    [
        ("10.3.0.26", {}, "this is TensorRT 10.3.0.26, and nvcr.io/nvidia/tritonserver:25.08-py3, which will load the plans, has 10.13.2.6"),
        ("11.1.0.106", {"ANY_RELEASE": "1"}, "the options below are for TensorRT 10 of release 25.08"),
        ("10.13.3.9", {"NVIDIA_TRITON_SERVER_VERSION": "25.09"}, "this is release 25.09, and release 25.08 will load the plans"),
        # The -trtllm image of the same month.
        ("10.11.0.33", {"NVIDIA_TRITON_SERVER_VERSION": "25.08"}, "this is TensorRT 10.11.0.33, and nvcr.io/nvidia/tritonserver:25.08-py3, which will load"),
        (
            "10.14.1.48",
            {"NVIDIA_TRITON_SERVER_VERSION": "25.08"},
            "has 10.13.2.6: it loads none that another built; a -trtllm image of the same release has another",
        ),
    ],
)
def test_another_tensorrt_than_that_of_the_release_is_refused(site, version, environment, words):
    site.version, site.environment = version, environment
    site.place(recipe())
    run = site.run()
    assert run.returncode == 3
    assert words in run.stderr
    assert "Run this script in nvcr.io/nvidia/tritonserver:25.08-py3" in run.stderr
    assert not site.plan().exists()


def test_the_very_image_is_right_whatever_the_table_says_and_any_release_can_be_asked_for(site):
    site.version, site.environment = "10.13.2.9", {"NVIDIA_TRITON_SERVER_VERSION": "25.08"}
    site.place(recipe())
    assert site.run().returncode == 0
    site.version, site.environment = "10.3.0.26", {"ANY_RELEASE": "1"}
    assert site.run().returncode == 0
    assert site.manifest().builder.tensorrt == "10.3.0.26"


@pytest.mark.parametrize(("version", "good"), [("10.10.0.31", False), ("10.12.0.1", True), ("10.14.1.48", False)])
def test_where_the_tensorrt_of_a_release_is_not_known_the_releases_around_it_bound_it(site, version, good):
    site.version, site.environment = version, {"NVIDIA_TRITON_SERVER_VERSION": "25.07"}
    site.place(recipe(release="25.07"))
    assert (site.run().returncode == 0) is good


EDITS = {
    "as it was": (lambda text: text, True),
    "compact": (lambda text: json.dumps(json.loads(text)), False),
    "indented by another program": (lambda text: json.dumps(json.loads(text), indent=2) + "\n", False),
    "no version": (lambda text: text.replace('"tensorrt": "10.13.2.6"', '"tensorrt": ""'), False),
    "half a version": (lambda text: text.replace('"tensorrt": "10.13.2.6"', '"tensorrt": "10"'), False),
    "three numbers": (lambda text: text.replace('"tensorrt": "10.13.2.6"', '"tensorrt": "10.13.2"'), True),
    "another version": (lambda text: text.replace('"tensorrt": "10.13.2.6"', '"tensorrt": "10.3.0.26"'), False),
    "another gpu": (lambda text: text.replace('"8.6"', '"9.0"'), False),
    "no gpu": (lambda text: text.replace('"8.6"', '""'), True),
    "a gpu that is none": (lambda text: text.replace('"8.6"', '"x"'), False),
    "another library": (lambda text: text.replace('"kind": "tensorrt"', '"kind": "tensorrt-rtx"'), False),
    "another format": (lambda text: text.replace('"format": 1', '"format": 2'), False),
    "format as text": (lambda text: text.replace('"format": 1', '"format": "1"'), False),
    "a driver with quotes": (lambda text: text.replace('"580.65.06"', '"5\\"80\\\\"'), True),
    "options edited": (lambda text: text.replace('"tf32": true', '"tf32": false'), False),
    "no options": (lambda text: re.sub(r'"options": .*', '"options": {}', text), False),
    "fingerprint edited": (lambda text: re.sub(r'"fingerprint": "\w+"', f'"fingerprint": "{"0" * 64}"', text), False),
    "hash edited": (lambda text: re.sub(r'"sha256": "\w+"', f'"sha256": "{"0" * 64}"', text), False),
    "no hash": (lambda text: re.sub(r'"sha256": "\w+"', '"sha256": ""', text), False),
    "a key twice": (lambda text: text.replace(' "kind"', ' "gpu": "x",\n "kind"'), False),
    "a key more": (lambda text: text.replace(' "kind"', ' "more": "x",\n "kind"'), False),
    "line ends of Windows": (lambda text: text.replace("\n", "\r\n"), False),
    "no last line end": (lambda text: text.rstrip("\n"), False),
    "nothing": (lambda text: "", False),
    "a list": (lambda text: "[]\n", False),
}


def test_the_script_and_python_judge_manifests_alike(site):
    wanted = recipe()
    site.place(wanted)
    assert site.run().returncode == 0
    path = site.artifacts / "m/1/model.plan.manifest.json"
    written = path.read_bytes().decode()
    loader = LoadedBy("25.08", compute_capability="8.6")
    verdicts = {}
    for what, (edit, good) in EDITS.items():
        path.write_bytes(edit(written).encode())
        run = site.run("--check")
        assert run.stderr == ""
        try:
            manifest = site.manifest()
            by_python = not stale(manifest, wanted, wanted.plans[0], loader) and manifest.sha256 == file_sha256(site.plan())
        except ValueError:
            by_python = False
        verdicts[what] = (run.returncode == 0, by_python, good)
    assert {what: verdict for what, verdict in verdicts.items() if len({*verdict}) > 1} == {}


def test_a_version_compatible_plan_is_good_for_later_versions(site):
    site.environment = {"ANY_RELEASE": "1"}
    site.version = "10.3.0.26"
    site.place(recipe(version_compatible=True))
    site.run()
    site.version = "10.13.2.6"
    assert site.run("--check").returncode == 0
    site.version = "10.0.1.6"
    assert "it was built with TensorRT 10.3.0.26, and this is 10.0.1.6" in site.run("--check").stdout


def test_hardware_compatible_plans_are_good_on_other_gpus(site):
    site.place(recipe(hardware_compatibility="ampere_plus"))
    site.run()
    site.gpus = H100
    assert site.run("--check").returncode == 0
    site.gpus = A10G.replace("8.6", "7.5")
    assert site.run("--check").returncode == 1
