"""How long a start may take: engines of TensorRT are built while a model loads, the first time."""

from __future__ import annotations

import pytest

from tritongen.server import ServerOptions, environment, runtime
from tritongen.server.adapt import Machine
from tritongen.server.attempt import Attempt
from tritongen.server.ports import Ports
from tritongen.server.served_copy import prepare

ENGINES = 'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }'


def test_shared_memory_is_found_by_its_prefix_whatever_the_spec_has_for_a_deployment(tmp_path):
    stated = "--backend-config=python,shm-region-prefix-name="
    options = ServerOptions(extra_args=(f"{stated}mine",))
    served = prepare([tmp_path], tmp_path / "copy", Machine(0, 2, str(tmp_path / "cache")), options)
    attempt = Attempt(options, environment.choose(), Ports(1, 2, 3, frozenset()), runtime.Runtime(tmp_path), served)
    assert [word.removeprefix(stated) for word in attempt.arguments() if word.startswith(stated)] == ["mine", attempt.runtime.shm_prefix]


@pytest.mark.parametrize(
    ("config", "gpus", "asked", "wanted"),
    [(ENGINES, 1, None, 3600), (ENGINES, 0, None, 120), ("", 1, None, 120), (ENGINES.replace("tensorrt", "cuda"), 1, None, 120), (ENGINES, 1, 30, 30)],
)
def test_a_start_that_builds_engines_may_take_an_hour(config, gpus, asked, wanted, tmp_path):
    folder = tmp_path / "repository/m"
    folder.mkdir(parents=True)
    (folder / "config.pbtxt").write_text(f'platform: "onnxruntime_onnx"\ninstance_group [ {{ kind: KIND_GPU }} ]\n{config}\n')
    options = ServerOptions(start_timeout_s=asked)
    served = prepare([tmp_path / "repository"], tmp_path / "copy", Machine(gpus, 2, str(tmp_path / "cache")), options)
    attempt = Attempt(options, environment.choose(), Ports(1, 2, 3, frozenset()), runtime.Runtime(tmp_path), served)
    assert attempt.start_timeout_s == wanted
    assert f"--backend-config=python,stub-timeout-seconds={wanted}" in attempt.arguments(), "Triton kills a stub that takes longer to load a model"
