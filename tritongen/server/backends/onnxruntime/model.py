"""`TritonPythonModel`: what Triton's stub calls. One object for each model instance, each in a process of its own."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import triton_python_backend_utils as triton

from . import graph, host, providers, release, settings, states, tensors, watchdog
from .errors import ORT_ERRORS, RefusedError, ort_message
from .execution import Executor
from .ragged import Assembly
from .verdicts import ortload, refuse_first

REMARK = "tritongen-remark: "
"""Start of a line for the user; `tritongen.server.log` looks for it in the server's log."""

_DEFAULT_FILE = "model.onnx"


class TritonPythonModel:
    """One instance of an ONNX model."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        """Fill in what the config leaves out, where NVIDIA's backend would."""
        config = auto_complete_model_config.as_dict()
        try:
            # NVIDIA's backend reads the parameters before anything else
            refuse_first(ortload.parameter_problems(config, gpu=False))
            if ortload.is_needed(config):
                _complete(config)
        except RefusedError as error:
            raise triton.TritonModelException(str(error)) from None
        return auto_complete_model_config

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the model and prepare everything that does not depend on a request."""
        watchdog.follow_parent()
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
            raise triton.TritonModelException(f"numpy {np.__version__}: Triton's stub reads and writes nothing but zeros with numpy 2; it needs numpy 1.x")
        config = json.loads(args["model_config"])
        try:
            self._executor = _executor(config, args)
        except RefusedError as error:
            raise triton.TritonModelException(str(error)) from None
        self._decoupled = bool(config.get("model_transaction_policy", {}).get("decoupled"))
        gc.collect()
        gc.freeze()  # what lives now lives as long as the process: later collections need not look at it

    def execute(self, requests: list[Any]) -> list[Any] | None:
        """Answer a batch of requests."""
        responses = self._executor.execute(requests)
        if not self._decoupled:
            return responses
        for request, response in zip(requests, responses, strict=True):
            request.get_response_sender().send(response, flags=triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None

    def finalize(self) -> None:
        """Release the session before the interpreter ends."""
        del self._executor


def _complete(config: dict[str, Any]) -> None:
    """Fill in what the config leaves out. Raises RefusedError where the config wants batches and the graph cannot have them."""
    path = host.model_file()
    if not path.exists():
        raise RefusedError(f"failed to stat file {path}")
    server = host.server_settings()
    session = _open(path, settings.session_options(config, path.parent.parent, server), [("CPUExecutionProvider", {})], release.target(server))
    written = config.get("max_batch_size", 0)
    default = ortload.integer(server.get("default-max-batch-size", ""))
    problem = ortload.complete(config, graph.read(session), ortload.DEFAULT_MAX_BATCH_SIZE if default is None else default)
    if problem is not None:
        raise RefusedError(problem.message)
    size = config.get("max_batch_size", 0)
    if size != written:
        remark = f"autofilled max_batch_size to {size}, since the model supports batching and the model configuration names no max_batch_size"
        _remark(config["name"], remark)


def _executor(config: Mapping[str, Any], args: Mapping[str, str]) -> Executor:
    """A session for this instance, checked against the config."""
    folder = Path(args["model_repository"])
    path = folder / args["model_version"] / (config.get("default_model_filename") or _DEFAULT_FILE)
    refuse_first(ortload.parameter_problems(config, gpu=False))
    if not path.exists():
        raise RefusedError(f"failed to stat file {path}")
    server = host.server_settings()
    target = release.target(server)
    chosen = providers.choose(config, args["model_instance_kind"], args["model_instance_device_id"], onnxruntime.get_available_providers())
    if target.strict:
        providers.refuse_missing(chosen)
    if chosen.asked and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    session = _open(path, settings.session_options(config, folder, server), chosen.available, target)
    if remark := release.newer_than(_file(path), target):
        _remark(args["model_name"], remark)
    lost = [*chosen.missing, *(name for name in chosen.asked if name not in session.get_providers())]
    if lost:
        remark = f"onnxruntime {onnxruntime.__version__} here cannot use {', '.join(lost)}; it runs on {', '.join(session.get_providers())}"
        if not chosen.asked and target.release:
            remark += f"; a backend that is built without it would refuse it, as NVIDIA's of release {target.release} for machines without a GPU"
        _remark(args["model_name"], remark)
    interface = graph.read(session)
    refuse_first(ortload.judge(config, interface, bf16=target.bf16 or not target.strict))
    kept = states.States(config, triton)
    assembly = Assembly.of(config)
    known = interface.inputs | interface.initializers
    inputs = tensors.ports([*config.get("input", []), *states.port_entries(config, "input_name", known)], known, batching=assembly.batching)
    outputs = tensors.ports(
        [*states.port_entries(config, "output_name", interface.outputs), *config.get("output", [])], interface.outputs, batching=assembly.batching
    )
    run = tensors.runner(session, inputs, outputs)
    return Executor(run, inputs, outputs, assembly=assembly, states=kept, options=settings.run_options(config), triton=triton)


def _open(path: Path, options: Any, chosen: Any, target: release.Target) -> Any:
    """A session from a file. Raises RefusedError with onnxruntime's reason, or with that of the target's older onnxruntime where the target is strict."""
    path = _file(path)
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[name for name, _ in chosen], provider_options=[given for _, given in chosen])
    except ORT_ERRORS as error:
        message = ort_message(error)
        raise RefusedError(message + release.confined_since(message, target)) from error
    if target.strict:
        release.newer_than(path, target)
    return session


def _file(path: Path) -> Path:
    """The model's file: `model.onnx` inside where Triton's directory form is used."""
    return path / _DEFAULT_FILE if path.is_dir() else path


def _remark(model: str, text: str) -> None:
    """Say something to the user through the server's log, in one write, so that other stubs' lines do not mix with it."""
    os.write(2, f"{REMARK}{json.dumps({'model': model, 'text': text})}\n".encode())
