"""What the rules about folders, names, groups and warmups say where a tree of text cannot show it: the unknown, several models, a plan that is built later."""

from pathlib import Path

import pytest

from tritongen.check.evaluate import evaluate, evaluate_path
from tritongen.diagnostics import Location
from tritongen.modelconfig import parse_pbtxt
from tritongen.releases import find_release
from tritongen.repository.scan import FileFacts, ModelFolder
from tritongen.rules import ModelContext, ServerFacts

CONFIG = """backend: "onnxruntime"
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [4] }]
"""


def model(name="m", text=CONFIG, folder=None, **facts):
    config = parse_pbtxt(text)
    config.name = config.name or name
    return ModelContext(name, config, True, ServerFacts(**facts), lambda key: Location(f"{name}/config.pbtxt"), folder, {}, text.encode())


def codes(*contexts):
    return [found.code for found in evaluate(contexts)]


def test_of_a_lone_config_nothing_is_said_that_needs_its_folder():
    lone = CONFIG.partition("\n")[2] + "version_policy { specific { versions: [7] } }\n"
    assert codes(model(text=lone)) == []


def test_what_a_link_may_hide_is_not_called_missing():
    linked = ModelFolder("m", Path("/repository/m"), {"1": FileFacts("link")})
    assert codes(model(folder=linked)) == ["TG228"]


def test_what_lies_beyond_the_limit_of_a_scan_is_not_called_missing():
    crowded = {"1": FileFacts("folder"), "1/shard0": FileFacts("file")}
    assert codes(model(folder=ModelFolder("m", Path("/repository/m"), crowded, truncated=True))) == []


def test_what_may_not_be_read_is_not_called_missing():
    locked = ModelFolder("m", Path("/repository/m"), {"1": FileFacts("folder", readable=False)})
    assert codes(model(folder=locked)) == ["TG227"]


def test_a_plan_that_is_built_on_the_target_is_not_missing():
    text = f"# tritongen-kept: 1/model.plan\n# tritongen-body: sha256:{'0' * 64}\n" + CONFIG.replace("onnxruntime", "tensorrt")
    later = ModelFolder("m", Path("/repository/m"), {"1": FileFacts("folder")})
    assert "TG225" not in codes(model(text=text, folder=later))
    assert "TG225" in codes(model(text=CONFIG.replace("onnxruntime", "tensorrt"), folder=later))


def test_files_by_gpu_are_not_judged():
    text = CONFIG.replace("onnxruntime", "tensorrt") + 'cc_model_filenames { key: "9.0" value: "hopper.plan" }\n'
    assert "TG225" not in codes(model(text=text, folder=ModelFolder("m", Path("/repository/m"), {"1": FileFacts("folder")})))


def test_a_resource_that_is_global_in_one_model_and_per_device_in_another():
    group = 'instance_group [{{ rate_limiter {{ resources [{{ name: "R" {} count: 1 }}] }} }}]\n'
    first, second = model("a", CONFIG + group.format("")), model("b", CONFIG + group.format("global: true"))
    found = [diagnostic for diagnostic in evaluate([first, second]) if diagnostic.code == "TG286"]
    assert [(diagnostic.model, "per device in model 'a'" in diagnostic.message) for diagnostic in found] == [("b", True)]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ('{ rate_limiter { resources [{ name: "R" }, { name: "R" global: true }] } }', "per device in instance group 1"),
        ('{ name: "a" rate_limiter { resources [{ name: "R" }] } }, { rate_limiter { resources [{ name: "R" global: true }] } }', "in instance group 'a'"),
    ],
)
def test_a_resource_of_two_kinds_in_one_model(groups, words):
    (found,) = [diagnostic for diagnostic in evaluate([model(text=f"{CONFIG}instance_group [{groups}]\n")]) if diagnostic.code == "TG286"]
    assert words in found.message


def test_a_cap_of_batches_is_one_whatever_the_backend():
    text = CONFIG.replace("onnxruntime", "tensorrt") + "dynamic_batching { preferred_batch_size: [4] }\n"
    assert "TG373" in codes(model(text=text))


def test_a_fixed_version_folder_is_the_one_that_triton_opens():
    both = ModelFolder("m", Path("/repository/m"), {"1": FileFacts("folder"), "1-old": FileFacts("folder")})
    assert model(folder=both).versions.loaded == {1: "1"}


@pytest.mark.parametrize("size", [15, 16, 17])
def test_a_warmup_file_is_measured(tmp_path, size):
    folder = tmp_path / "m"
    (folder / "warmup").mkdir(parents=True)
    (folder / "warmup" / "x").write_bytes(bytes(size))
    (folder / "1").mkdir()
    sample = 'model_warmup [{ batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [4] input_data_file: "x" } } }]\n'
    (folder / "config.pbtxt").write_text(CONFIG.replace("onnxruntime", "identity") + sample)
    said = [found.message for found in evaluate_path(tmp_path, ServerFacts()) if found.code == "TG317"]
    if size == 16:
        assert said == []
    else:
        (message,) = said
        assert f"warmup/x has {size} bytes" in message
        assert "takes 16" in message
        assert ("reads the first 16" in message) == (size > 16)


@pytest.mark.parametrize(("release", "absent"), [("24.01", False), ("24.02", True), ("24.03", False)])
def test_the_image_without_onnxruntime(release, absent):
    assert ("TG235" in codes(model(release=find_release(release)))) == absent


def test_gpus_are_judged_only_where_their_number_is_known():
    text = CONFIG + "instance_group [{ kind: KIND_GPU gpus: [3] }]\n"
    assert "TG282" not in codes(model(text=text))
    assert "TG282" in codes(model(text=text, gpus=2))
    assert codes(model(text=text, gpus=0)).count("TG281") == 1
    assert "TG282" not in codes(model(text=text, gpus=0)), "one mistake, one finding"
