"""`server` and `deploy` against the release and the models."""

from __future__ import annotations

import pytest

from tritongen.diagnostics import Severity
from tritongen.errors import InputError
from tritongen.releases import find_release
from tritongen.render.server import judge_server
from tritongen.spec import load_spec

MODEL = "models: [{name: m, source: m.onnx}]"
LIMITED = "models: [{name: m, source: m.onnx, instances: [{kind: cpu, rate_limiter: {resources: [{name: slot, count: 4}]}}]}]"


def judged(folder, text):
    path = folder / "spec.yaml"
    path.write_text(f"version: 1\n{text}\n")
    loaded = load_spec(path)
    release = loaded.spec.triton.release
    return judge_server(loaded.spec, find_release(release) if release else None, loaded.locate)


@pytest.mark.parametrize(
    ("key", "option", "first"),
    [
        ("http: {max_input_size: 1GiB}", "--http-max-input-size", "25.06"),
        ("grpc: {infer_threads: 4}", "--grpc-infer-thread-count", "25.04"),
        ("grpc: {max_response_pool: 4}", "--grpc-max-response-pool-size", "25.03"),
        ("client_shared_memory: true", "--allow-client-shm", "26.04"),
        ("metrics: {histogram_latencies: true}", "--metrics-config", "24.12"),
    ],
)
def test_an_option_is_an_error_up_to_the_release_that_has_it(tmp_path, key, option, first):
    before = {"25.06": "25.05", "25.04": "25.03", "25.03": "25.02", "26.04": "26.03", "24.12": "24.10"}[first]
    (finding,) = judged(tmp_path, f'triton: {{release: "{before}"}}\nserver:\n  {key}\n{MODEL}')
    assert (finding.code, finding.severity, finding.location.line) == ("TG430", Severity.ERROR, 4)
    assert option in finding.message
    assert first in finding.hint
    assert judged(tmp_path, f'triton: {{release: "{first}"}}\nserver:\n  {key}\n{MODEL}') == []


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (f"server: {{model_control: explicit, load_models: [n]}}\n{MODEL}", "TG431", "no model 'n'"),
        (f"server: {{rate_limit: {{resources: [{{name: slot, count: 3}}]}}}}\n{LIMITED}", "TG432", "takes 4"),
        ("deploy: {gpus: [6, 7]}\nmodels: [{name: m, source: m.onnx, instances: [{kind: gpu, gpus: [6]}]}]", "TG433", "gets 2"),
        (f"deploy: {{gpus: [6]}}\nserver: {{memory: {{gpus: [{{gpu: 1, pool: 1MiB}}]}}}}\n{MODEL}", "TG433", "server.memory names GPU 1"),
        (f"server: {{metrics: {{summary_quantiles: [{{quantile: 0.5, error: 0.1}}]}}}}\n{MODEL}", "TG117", "without summary_latencies"),
        (f"server: {{cache: {{size: 1MiB}}}}\n{MODEL}", "TG117", "no model has response_cache"),
        (f"server: {{rate_limit: {{}}}}\n{MODEL}", "TG117", "no model has instances with a rate_limiter"),
        (f"server: {{rate_limit: {{resources: [{{name: other, count: 1}}]}}}}\n{LIMITED}", "TG117", "'other'"),
    ],
)
def test_what_does_not_fit_the_models_is_said_once_at_its_key(tmp_path, text, code, words):
    (finding,) = judged(tmp_path, text)
    assert finding.code == code
    assert words in finding.message


@pytest.mark.parametrize(
    "text",
    [
        f"server: {{model_control: explicit, load_models: ['*']}}\n{MODEL}",
        f"server: {{rate_limit: {{resources: [{{name: slot, count: 4}}]}}}}\n{LIMITED}",
        "deploy: {gpus: [6, 7]}\nmodels: [{name: m, source: m.onnx, instances: [{kind: gpu, gpus: [0, 1]}]}]",
        "server: {cache: {size: 1MiB}}\nmodels: [{name: m, source: m.onnx, response_cache: true}]",
    ],
)
def test_what_fits_is_not_spoken_of(tmp_path, text):
    assert judged(tmp_path, text) == []


def test_what_the_spec_says_of_the_server_is_not_asked_for_again(project, tritongen):
    keys = "response_cache: true, instances: [{kind: cpu, host_policy: p, rate_limiter: {}}]"
    (project / "spec.yaml").write_text(f"version: 1\nmodels: [{{name: m, source: mlp.onnx, {keys}}}]\n")
    asked = tritongen("render", project / "spec.yaml", "--dry-run").err
    assert [asked.count(code) for code in ("TG409", "TG174")] == [1, 2]
    server = "server: {cache: {size: 1MiB}, rate_limit: {}, host_policies: {p: {numa_node: 0}}}"
    (project / "spec.yaml").write_text(f"version: 1\n{server}\nmodels: [{{name: m, source: mlp.onnx, {keys}}}]\n")
    assert tritongen("render", project / "spec.yaml", "--dry-run").err == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("server: {poll_interval: 1s}", "model_control: poll"),
        ("server: {load_models: [m]}", "model_control: explicit"),
        ("server: {model_control: explicit, load_models: ['*', m]}", "stands for all models"),
        ("server: {model_control: poll, poll_interval: 1500ms}", "whole seconds"),
        ("server: {metrics: {interval: 1500us}}", "whole milliseconds"),
        ("server: {exit_timeout: 0s}", "whole seconds"),
        ("server: {listen: {http: 8001}}", "http has port 8001, which grpc has by default"),
        ("server: {listen: {address: localhost}}", "number of a network interface"),
        ("server: {cache: {size: 1000B}}", "too small"),
        ("server: {host_policies: {p: {}}}", "no node and no cores"),
        ("server: {host_policies: {p: {cpu_cores: 0-}}}", "no CPU cores"),
        ("server: {host_policies: {'a,b': {numa_node: 0}}}", "--host-policy"),
        ("server: {backend_config: {'a,b': {c: 1}}}", "--backend-config"),
        ("server: {backend_config: {a: {'b=c': 1}}}", "--backend-config"),
        ("server: {backend_config: {a: {b: [1]}}}", "a text, a number, true or false"),
        ("deploy: {gpus: []}", "an empty list"),
        ("deploy: {gpus: [0, 0]}", "listed twice"),
        ("deploy: {gpus: [MIG]}", "GPU-... or MIG-..."),
        ("deploy: {user: root}", "a user's number"),
        ("deploy: {image: 'a b'}", "name of an image"),
        ("deploy: {environment: {'A-B': x}}", "name of a variable"),
    ],
)
def test_keys_are_judged_where_they_stand(tmp_path, text, words):
    with pytest.raises(InputError) as caught:
        judged(tmp_path, f"{text}\n{MODEL}")
    found = [finding for finding in caught.value.diagnostics if finding.code != "TG020"]
    assert [words in finding.message for finding in found] == [True]
    assert found[0].location.line == 2
    assert found[0].hint


PLANS = """\
server: {{backend_config: {{tensorrt: {{{stated}}}}}}}
models:
  - {{name: a, source: m.onnx, backend: tensorrt, tensorrt: {{build: {{version_compatible: true, plugins: [/opt/a.so]}}}}}}
  - {{name: b, source: m.onnx, backend: tensorrt, tensorrt: {{build: {{plugins: [/opt/b.so, /opt/a.so]}}}}}}
"""


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        ("coalesce-request-input: true", []),
        ("version-compatible: true, plugins: /opt/b.so;/opt/c.so;/opt/a.so", []),
        ("version-compatible: false", ["'false', and model 'a' asks for true"]),
        ("plugins: /opt/b.so", ["'/opt/b.so', and model 'a' asks for /opt/a.so", "'/opt/b.so', and model 'b' asks for /opt/a.so"]),
    ],
)
def test_a_setting_of_a_backend_has_what_plans_need(tmp_path, stated, wrong):
    found = judged(tmp_path, PLANS.format(stated=stated))
    assert [finding.code for finding in found] == ["TG443"] * len(wrong)
    assert all(words in finding.message for words, finding in zip(wrong, found, strict=True))


SET = "triton: {{release: '{release}'}}\ndeploy: {{{deploy}}}\nserver: {{backend_config: {{{stated}}}}}\nmodels: [{{name: m, source: m.onnx, {model}}}]"


IDLE = "TG117 intra_op_thread_count: write enable-global-threadpool: true"


@pytest.mark.parametrize(
    ("stated", "model", "said"),
    [
        ("onnxruntime: {enable-global-threadpool: true, intra_op_thread_count: 4}", "", []),
        ("python: {shm-default-byte-size: 1048576, stub-timeout-seconds: 60}, openvino: {a: b}", "", []),
        ("tensorrt: {coalesce-request-input: 'On', execution-policy: BLOCKING}", "backend: tensorrt", []),
        ("onnxruntime: {enable_global_thread_pool: 1}", "", ["TG444 enable_global_thread_pool: did you mean 'enable-global-threadpool'?"]),
        ("onnxruntime: {stub_timeout_seconds: 1}", "", ["TG444 stub_timeout_seconds: did you mean python: {stub-timeout-seconds: ...}?"]),
        ("python: {x: 1}", "", ["TG444 x: its settings are shm-default-byte-size, "]),
        ("onnx: {x: 1}", "", ["TG444 onnx: did you mean 'onnxruntime'?"]),
        ("mine: {x: 1}", "", ["TG444 mine: remove it; a backend of your own"]),
        ("python: {shm-default-byte-size: 64MiB, stub-timeout-seconds: 0}", "", ["TG445 shm-default-byte-size: ", "TG445 stub-timeout-seconds: "]),
        ("onnxruntime: {enable-global-threadpool: yes please}", "", ["TG445 enable-global-threadpool: write true or false"]),
        ("tensorrt: {execution-policy: NONE}", "backend: tensorrt", ["TG445 execution-policy: write DEVICE_BLOCKING or BLOCKING"]),
        ("onnxruntime: {intra_op_thread_count: 4}", "", [IDLE]),
        ("onnxruntime: {enable-global-threadpool: true}", "cpu_threads: 2", ["TG117 cpu_threads: remove it, or enable-global-threadpool"]),
        ("onnxruntime: {default-max-batch-size: 8}", "", ["TG117 default-max-batch-size: remove it, and write batching"]),
        ("onnxruntime: {intra_op_thread_count: 2147483648}", "", ["TG445 intra_op_thread_count: write a whole number from 0 to 2147483647", IDLE]),
        (
            "python: {shm-growth-byte-size: 9223372036854775808}",
            "",
            ["TG445 shm-growth-byte-size: write a whole number of bytes from 1 to 9223372036854775807"],
        ),
        ("onnxruntime: {enable-global-threadpool: true, intra_op_thread_count: 4}", "backend: tensorrt", []),
        ("tensorrt: {version-compatible: true}", "accelerator: tensorrt", ["TG117 tensorrt: remove it"]),
    ],
)
def test_settings_of_backends_are_those_that_the_backends_read(tmp_path, stated, model, said):
    found = judged(tmp_path, SET.format(release="25.08", deploy="", stated=stated, model=model))
    assert len(found) == len(said)
    for finding, wanted in zip(found, said, strict=True):
        code, key, hint = wanted.replace(": ", " ", 1).split(" ", 2)
        assert (finding.code, finding.location.line) == (code, 5 if key == "cpu_threads" else 4)
        assert key in finding.message
        assert finding.hint.startswith(hint)


def test_settings_of_a_backend_that_the_image_lacks_are_said_unless_the_image_is_ones_own(tmp_path):
    for release, deploy, codes in (("25.03", "", ["TG444"]), ("25.02", "", []), ("25.03", "image: 'r.example/mine:1'", [])):
        found = judged(tmp_path, SET.format(release=release, deploy=deploy, stated="tensorflow: {version: 2}", model=""))
        assert [finding.code for finding in found] == codes
    assert judged(tmp_path, SET.format(release="25.08", deploy="image: 'r.example/mine:1'", stated="mine: {x: 1}", model="")) == []


TAGGED = "triton: {release: '25.08'}\ndeploy: {image: 'nvcr.io/nvidia/tritonserver:25.08-%s'}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("triton: {release: '24.10'}\ndeploy: {image: 'r.example:5000/a/tritonserver:25.08-py3'}", ["TG446 deploy.image"]),
        ("deploy: {image: 'tritonserver:24.10-py3@sha256:%s'}" % ("0" * 64), ["TG446 deploy.image"]),
        ("triton: {release: '25.08'}\ndeploy: {image: 'tritonserver:25.08'}", []),
        ("deploy: {image: 'r.example:25/mine:1.2.3'}", []),
        ("deploy: {load: {scenario: x}}", ["TG447 deploy.load.scenario"]),
        ("deploy: {load: {scenario: x}}\nload: {scenarios: {y: {rate: 2}}}", ["TG447 deploy.load.scenario"]),
        ("deploy: {load: {scenario: y}}\nload: {scenarios: {x: {rate: 1}, y: {rate: 2}}}", []),
        ("server: {memory: {pinned: 1GiB}}\ndeploy: {memory: 512MiB}", ["TG448 deploy.memory"]),
        ("deploy: {memory: 1GiB, shm_size: 2GiB}", ["TG448 deploy.shm_size"]),
        ("deploy: {environment: {CUDA_DEVICE_ORDER: FASTEST_FIRST}}", ["TG448 deploy.environment.CUDA_DEVICE_ORDER"]),
        ("deploy: {environment: {CUDA_DEVICE_ORDER: PCI_BUS_ID}}", []),
        *((TAGGED % tag, []) for tag in ("py3", "mine-py3", "admin", "py3-min-onnx", "pyt-mine")),
        *(
            (TAGGED % tag, ["TG446 deploy.image"])
            for tag in ("py3-sdk", "py3-igpu-sdk", "py3-min", "py3-igpu", "vllm-python-py3", "trtllm-python-py3", "pyt-python-py3")
        ),
        ("triton: {release: '24.10'}\ndeploy: {image: 'nvcr.io/nvidia/tritonserver:24.10-tf2-python-py3'}", ["TG446 deploy.image"]),
        ("server: {model_control: poll}\ndefaults: {backend: tensorrt}", ["TG448 server.model_control"]),
        ("server: {model_control: explicit}", ["TG448 server.model_control"]),
        ("deploy: {environment: {NVIDIA_VISIBLE_DEVICES: all}}", ["TG448 deploy.environment.NVIDIA_VISIBLE_DEVICES"]),
        ("deploy: {gpus: [0], environment: {CUDA_VISIBLE_DEVICES: '1'}}", ["TG448 deploy.environment.CUDA_VISIBLE_DEVICES"]),
        ("deploy: {gpus: [MIG-a, MIG-b]}", ["TG448 deploy.gpus"]),
        ("deploy: {gpus: [GPU-a, GPU-b]}", []),
        ("server: {metrics: {enabled: false, interval: 1s}}", ["TG117 server.metrics.interval"]),
        ("server: {metrics: {enabled: false}, listen: {metrics: 9000}}", ["TG117 server.listen.metrics"]),
        ("server: {metrics: {enabled: false}}\ndeploy: {monitoring: {retention: 9h}}", ["TG117 deploy.monitoring.retention"]),
    ],
)
def test_settings_of_a_deployment_that_disagree_are_named_at_their_key(tmp_path, text, found):
    path = tmp_path / "spec.yaml"
    path.write_text(f"version: 1\n{text}\nmodels: [{{name: m, source: m.onnx}}]\n")
    loaded = load_spec(path)
    judged = judge_server(loaded.spec, None, loaded.locate)
    keys = {loaded.locate(tuple(line.partition(" ")[2].split("."))) for line in found}
    assert [finding.code for finding in judged] == [line.partition(" ")[0] for line in found]
    assert {finding.location for finding in judged} == keys


def test_an_image_that_serves_no_such_model_is_named_with_the_one_that_does(tmp_path):
    image = "r.example:5000/a/tritonserver:25.08"
    for tag, words in (("-py3-sdk", "no tritonserver"), ("-vllm-python-py3", "no backend onnxruntime or tensorrt")):
        (finding,) = judged(tmp_path, f"triton: {{release: '25.08'}}\ndeploy: {{image: '{image}{tag}@sha256:{'0' * 64}'}}\n{MODEL}")
        assert f"the image 25.08{tag} " in finding.message
        assert words in finding.message
        assert f"write image: {image}-py3, or" in finding.hint


@pytest.mark.parametrize(("image", "severity"), [("nvcr.io/nvidia/tritonserver", Severity.ERROR), ("r.example/nvidia/tritonserver", Severity.WARNING)])
def test_only_an_image_of_nvidias_own_is_refused_for_its_tag(tmp_path, image, severity):
    (finding,) = judged(tmp_path, f"triton: {{release: '25.08'}}\ndeploy: {{image: '{image}:25.08-py3-min'}}\n{MODEL}")
    assert finding.severity is severity


def test_a_cache_larger_than_the_server_may_be_is_refused_and_so_are_short_memories_of_alerts(tmp_path):
    cached = "deploy: {memory: 64MiB}\nmodels: [{name: m, source: m.onnx, response_cache: true}]"
    promised = "deploy: {monitoring: {retention: 71h}}\nmodels: [{name: m, source: m.onnx, slo: {p99: 5ms}}]"
    for text in (cached, promised):
        assert [finding.code for finding in judged(tmp_path, text)] == ["TG448"]
    for text in (cached.replace("64MiB", "65MiB"), promised.replace("71h", "72h")):
        assert judged(tmp_path, text) == []


def test_several_mig_devices_are_one_gpu(tmp_path):
    text = "deploy: {gpus: [MIG-a, MIG-b]}\nmodels: [{name: m, source: m.onnx, instances: [{kind: gpu, gpus: [0, 1]}]}]"
    assert [finding.code for finding in judged(tmp_path, text)] == ["TG433", "TG448"]
