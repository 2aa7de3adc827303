"""Rules: `parameters` and `optimization.graph`, as backends read them, and `metric_tags`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from tritongen.modelconfig import ModelInstanceGroup
from tritongen.rules.context import ModelContext
from tritongen.rules.graphs import json_form
from tritongen.rules.ortload import GPU_PARAMETERS, PARAMETERS, TENSORRT_KEYS, integer, parameter_problems
from tritongen.rules.placement import on_gpu, why_not
from tritongen.rules.rule import Consequence, Finding, Rule

_SOURCE = "onnxruntime_backend/src/onnxruntime.cc"
_STRATEGY = "execution_context_allocation_strategy"
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")
ENVIRONMENT = "EXECUTION_ENV_PATH"
"""The parameter with which a Python model brings its own Python."""
_MODEL_FOLDER = "$$TRITON_MODEL_DIRECTORY/"
_FORCE_CPU = "FORCE_CPU_ONLY_INPUT_TENSORS"
_KNOWN = {
    "onnxruntime": tuple(PARAMETERS),
    "tensorrt": (_STRATEGY, "enable_multi_device", "multi_device_gpus", "multi_device_per_rank_engines"),
    "python": (ENVIRONMENT, _FORCE_CPU),
}
_COMMON = ("TRITON_BATCH_STRATEGY_PATH",)
_MEANT = {
    "intra_op_num_threads": "intra_op_thread_count",
    "inter_op_num_threads": "inter_op_thread_count",
    "graph_optimization_level": "",
    "optimized_model_filepath": "",
    "enable_profiling": "",
}
"""Names that ONNX Runtime's own interface has → the backend's; empty where it has none."""

_TAG = re.compile(r"([a-zA-Z0-9][a-zA-Z0-9_]*)?")
"""The core puts a _ before it; a label is letters, digits and _, and does not begin with a digit or two _."""

_FEWER = {1: "the extended optimisations only", 2: "no optimisation at all", -1: "the basic optimisations only"}


def _values(context: ModelContext) -> Iterator[Finding]:
    if context.is_onnx and context.config.parameters:
        for problem in parameter_problems(json_form(context.config), gpu=on_gpu(context) is True):
            yield Finding(f"{problem.name} is '{problem.found}'; expected {problem.expected}", problem.path, f"write {problem.expected}")
    parameters = context.config.parameters
    if context.is_plan and _STRATEGY in parameters and parameters[_STRATEGY].string_value not in _STRATEGIES:
        message = f"{_STRATEGY} is '{parameters[_STRATEGY].string_value}'; expected {' or '.join(_STRATEGIES)}"
        yield Finding(message, ("parameters", _STRATEGY), f"write {' or '.join(_STRATEGIES)}")
    if context.resolved.backend == "python" and _FORCE_CPU in parameters and parameters[_FORCE_CPU].string_value not in ("yes", "no"):
        message = f"{_FORCE_CPU} is '{parameters[_FORCE_CPU].string_value}'; expected yes or no"
        yield Finding(message, ("parameters", _FORCE_CPU), 'write string_value: "no" to be given tensors where they are')


def _unknown(context: ModelContext) -> Iterator[Finding]:
    """Only what was surely meant for the backend: other keys may be the owner's notes."""
    known = _KNOWN.get(context.resolved.backend)
    if known is None or context.is_ensemble:
        return
    for name in sorted(context.config.parameters):
        if name in known or name in _COMMON:
            continue
        key = ("parameters", name)
        message = f"the {context.resolved.backend} backend reads no parameter '{name}'"
        close = difflib.get_close_matches(name.lower(), [other.lower() for other in known], n=1, cutoff=0.85)
        if context.is_onnx and name in _MEANT:
            yield Finding(message, key, f'write key: "{_MEANT[name]}"' if _MEANT[name] else "remove it; the backend has no setting for it in parameters")
        elif context.is_onnx and name in TENSORRT_KEYS:
            yield Finding(message, key, "move it to the parameters of the gpu_execution_accelerator 'tensorrt', with a plain string as its value")
        elif close:
            meant = next(other for other in known if other.lower() == close[0])
            yield Finding(message, key, f'did you mean key: "{meant}"?')


def _tags(context: ModelContext) -> Iterator[Finding]:
    for name in sorted(context.config.metric_tags):
        if not _TAG.fullmatch(name):
            better = re.sub(r"[^a-zA-Z0-9_]+", "_", name).lstrip("_") or "tag"
            message = f"metric_tags has the key '{name}', which makes no label of a metric; the whole server crashes over it (tried on 24.10)"
            yield Finding(message, ("metric_tags", name), f'write key: "{better}"')


def _inter_op(context: ModelContext) -> Iterator[Finding]:
    parameters = context.config.parameters
    if not context.is_onnx or "inter_op_thread_count" not in parameters:
        return
    mode = parameters["execution_mode"].string_value if "execution_mode" in parameters else "0"
    if integer(mode) == 0 and (integer(parameters["inter_op_thread_count"].string_value) or 0) > 1:
        message = "inter_op_thread_count has no effect in execution_mode 0, which runs one operator after another"
        hint = 'write parameters { key: "execution_mode" value: { string_value: "1" } } to run branches in parallel, or remove inter_op_thread_count'
        yield Finding(message, ("parameters", "inter_op_thread_count"), hint)


def _gpu_only(context: ModelContext) -> Iterator[Finding]:
    if context.is_onnx and on_gpu(context) is False:
        for name in GPU_PARAMETERS:
            if name in context.config.parameters:
                yield Finding(f"{name} has no effect: it is read for GPU instances, and {why_not(context)}", ("parameters", name), "remove it")


def _graph_level(context: ModelContext) -> Iterator[Finding]:
    if not context.is_onnx or not context.config.optimization.HasField("graph"):
        return
    level = context.config.optimization.graph.level
    key = ("optimization", "graph", "level")
    if level in _FEWER:
        message = f"graph level {level} means {_FEWER[level]}: in Triton 0, the default, is the highest level for ONNX models"
        yield Finding(message, key, "remove graph { level } for all optimisations; keep it only to look for a fault of the optimiser")
    elif level:
        message = f"there is no graph level {level}; like 0 it means all optimisations"
        yield Finding(message, key, "remove graph { level }", consequence=Consequence.IGNORED)


def _environment(context: ModelContext) -> Iterator[Finding]:
    folder = context.folder
    if folder is None or context.resolved.backend != "python" or ENVIRONMENT not in context.config.parameters or folder.truncated:
        return
    path = context.config.parameters[ENVIRONMENT].string_value
    inside = path.removeprefix(_MODEL_FOLDER).rstrip("/")
    if path.startswith(_MODEL_FOLDER) and ".." not in inside.split("/") and inside not in folder.entries:
        archives = sorted(name for name in folder.entries if name.endswith((".tar.gz", ".tgz")))
        hint = f'write string_value: "{_MODEL_FOLDER}{archives[0]}"' if len(archives) == 1 else "put the environment there (conda-pack), or correct the path"
        yield Finding(f"{ENVIRONMENT} is '{path}', and the model's folder has no '{inside}'", ("parameters", ENVIRONMENT), hint)


def _threads(context: ModelContext) -> Iterator[Finding]:
    """Several CPU instances whose sessions each take every core."""
    if not context.is_onnx or integer(_text(context, "intra_op_thread_count")):
        return
    groups = [group for group in context.config.instance_group if group.kind == ModelInstanceGroup.KIND_CPU]
    explicit = sum(group.count for group in groups if group.count > 1)
    if explicit > 1:
        message = f"{explicit} CPU instances, each with as many threads as the machine has cores"
        hint = f'write parameters {{ key: "intra_op_thread_count" value: {{ string_value: "N" }} }}, where N is the number of cores divided by {explicit}'
        yield Finding(message, ("instance_group", list(context.config.instance_group).index(groups[0]), "count"), hint)


def _text(context: ModelContext, name: str) -> str:
    return str(context.config.parameters[name].string_value) if name in context.config.parameters else "0"


_ONNX = 'platform: "onnxruntime_onnx"\n'


def _parameter(name: str, text: str) -> str:
    return f'parameters {{ key: "{name}" value: {{ string_value: "{text}" }} }}'


RULES: tuple[Rule, ...] = (
    Rule(
        "TG300",
        "parameter-value",
        Consequence.REFUSED,
        "Parameters that the backend reads hold values that it understands.",
        f"The onnxruntime backend refuses a number that is none, a switch that is none, and an execution_mode other than 0 and 1 ({_SOURCE}; "
        "recorded by running NVIDIA's backend "
        "of release 24.10); the tensorrt and python backends refuse other words than theirs.",
        _ONNX + _parameter("intra_op_thread_count", "four"),
        _ONNX + _parameter("intra_op_thread_count", "4"),
        _values,
    ),
    Rule(
        "TG301",
        "parameter-nobody-reads",
        Consequence.IGNORED,
        "A parameter that is meant for the backend has the name that the backend reads.",
        f"Backends look for the keys they know and ignore the others ({_SOURCE}), so that a misspelt one changes nothing. Keys that resemble none "
        "are taken for notes.",
        _ONNX + _parameter("intra_op_num_threads", "4"),
        _ONNX + _parameter("intra_op_thread_count", "4"),
        _unknown,
    ),
    Rule(
        "TG302",
        "threads-between-operators",
        Consequence.IGNORED,
        "inter_op_thread_count comes with execution_mode 1.",
        "ONNX Runtime uses the pool between operators only in parallel execution (its documentation of thread management); execution_mode 0 is the default.",
        _ONNX + _parameter("inter_op_thread_count", "4"),
        f"{_ONNX}{_parameter('inter_op_thread_count', '4')}\n{_parameter('execution_mode', '1')}",
        _inter_op,
    ),
    Rule(
        "TG303",
        "gpu-parameter-on-the-cpu",
        Consequence.IGNORED,
        "Settings of the CUDA provider are given to models with GPU instances.",
        f"{', '.join(GPU_PARAMETERS)} are read where a GPU instance is made, and nowhere else ({_SOURCE}, LoadModel).",
        f"{_ONNX}instance_group [ {{ kind: KIND_CPU }} ]\n{_parameter('gpu_mem_limit', '2147483648')}",
        f"{_ONNX}instance_group [ {{ kind: KIND_GPU }} ]\n{_parameter('gpu_mem_limit', '2147483648')}",
        _gpu_only,
    ),
    Rule(
        "TG304",
        "graph-level-that-optimises-less",
        Consequence.MISBEHAVES,
        "optimization.graph.level is left out unless less optimisation is wanted.",
        f"The backend maps -1 to basic, 1 to extended and 2 to none; 0 and everything else is all ({_SOURCE}): a higher number is not a higher level.",
        f"{_ONNX}optimization {{ graph {{ level: 2 }} }}",
        _ONNX.strip(),
        _graph_level,
    ),
    Rule(
        "TG305",
        "missing-python-environment",
        Consequence.REFUSED,
        "EXECUTION_ENV_PATH names an environment that is in the model's folder.",
        "The python backend unpacks it before it starts the model's process, and refuses the model where it is not there (python_backend, "
        "environment.cc). It must be built for the "
        "Python of the image's stub (3.12 from 24.11 on, 3.10 before), or come with a stub of its own.",
        'backend: "python"\n' + _parameter(ENVIRONMENT, _MODEL_FOLDER + "env.tgz"),
        'backend: "python"\n' + _parameter(ENVIRONMENT, _MODEL_FOLDER + "env.tar.gz"),
        _environment,
        needs=frozenset({"config", "folder"}),
    ),
    Rule(
        "TG306",
        "instances-that-fight-for-cores",
        Consequence.SLOW,
        "Several CPU instances of an ONNX model share the cores by intra_op_thread_count.",
        "Each instance has a session of its own whose thread pool has a thread for every core, so that the pools fight (Triton's documentation of "
        "the onnxruntime backend; ONNX "
        "Runtime's of thread management).",
        f"{_ONNX}instance_group [ {{ kind: KIND_CPU count: 4 }} ]",
        f"{_ONNX}instance_group [ {{ kind: KIND_CPU count: 4 }} ]\n{_parameter('intra_op_thread_count', '2')}",
        _threads,
    ),
    Rule(
        "TG307",
        "metric-tag-that-is-no-label",
        Consequence.REFUSED,
        "Keys of metric_tags are letters, digits and _, and do not begin with _.",
        "The core puts a _ before each and hands it to the Prometheus library, which throws over other characters and over two _ at the beginning; the whole "
        "server ends by signal 6 when it loads the model, whatever else the repository holds (tried on 24.10).",
        'metric_tags { key: "team-name" value: "vision" }',
        'metric_tags { key: "team_name" value: "vision" }',
        _tags,
    ),
)
