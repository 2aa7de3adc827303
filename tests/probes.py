"""Verdicts of NVIDIA's C++ onnxruntime backend, recorded by running it: release 24.10 (core 2.51.0, ONNX Runtime 1.19.2), CPU build, two cores, no GPU.

Each case is a model folder that was loaded by name, once with auto-complete on (`default`) and once with `--disable-auto-complete-config` (`strict`). The table
is the evidence for what the onnxruntime backend refuses: our own backend agreeing with our own rules would prove nothing. It says nothing of GPU builds (the
code that reads `gpu_execution_accelerator` is compiled out here), of other releases, or of other versions of ONNX Runtime.

A case is the control config with the differences in `fields` (None: the field is left out; `config=False`: there is no config.pbtxt). The texts are the
server's words, in full where they are short, else their telling part; `{name}` is the model's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.rules.building import build_onnx

LOADS = ""
"""The outcome of a model that loads."""

MODELS = {
    "mlp": "input x FP32 [N, 64]\noutput y FP32 [N, 16]\n",
    "wide": "input x FP32 [N, F]\noutput y FP32 [N, F]\n",
    "two inputs": "input x FP32 [N, 64]\ninput b FP32 [N, 64]\noutput y FP32 [N, 16]\n",
    "batch and none": "input x FP32 [N, 64]\ninput b FP32 [64]\noutput y FP32 [N, 16]\n",
    "fixed": "input x FP32 [1, 64]\noutput y FP32 [1, 16]\n",
    "fp16": "input x FP16 [N, 64]\noutput y FP16 [N, 16]\n",
    "scalar": "input x FP32 [N, 64]\noutput y FP32 []\n",
    "string": "input x BYTES [N, 1]\noutput y BYTES [N, 1]\n",
    "two outputs": "input x FP32 [N, 64]\noutput y FP32 [N, 16]\noutput z FP32 [N, 16]\n",
    "opset 26": "input x FP32 [N, 64]\noutput y FP32 [N, 16]\nopset 26\n",
}
"""Graphs by name; those not here (`truncated`, `text`, `empty`) are no models."""

CONTROL = {
    "platform": 'platform: "onnxruntime_onnx"',
    "max_batch_size": "max_batch_size: 8",
    "input": 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 64 ] } ]',
    "output": 'output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]',
    "name": 'name: "{name}"',
}


@dataclass(frozen=True)
class Probe:
    """One case.

    Attributes:
        name: the case's name in the record, and the model's.
        codes: rules that must see it as refused; empty where it loads.
        default: what the server said with auto-complete on; LOADS where the model loaded.
        strict: the same without auto-complete, where that differs.
        fields: differences to the control config.
        model: the graph's name in MODELS.
        files: where the model file lies in the folder; empty where there is none. A path that ends with / is an empty folder.
        config: whether there is a config.pbtxt.
        strict_codes: `codes` for `strict`, where that differs.
        fails: rules that must say that requests fail, by mode.
        says: rules that must say something else (ignored, misbehaves) of a model that loads without a word.
        crashes: whether the server may crash instead of refusing.
        of_the_build: whether the verdict holds for the recorded CPU build alone. `check` is not told the build: it warns.
        refused_here: False where this machine's newer ONNX Runtime, or an adapted copy, serves what release 24.10 refuses.
    """

    name: str
    default: str = LOADS
    codes: frozenset[str] = frozenset()
    strict: str | None = None
    fields: dict[str, str | None] = field(default_factory=dict)
    model: str = "mlp"
    files: tuple[str, ...] = ("1/model.onnx",)
    config: bool = True
    strict_codes: frozenset[str] | None = None
    fails: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    says: frozenset[str] = frozenset()
    crashes: bool = False
    refused_here: bool = True
    of_the_build: bool = False

    def outcome(self, *, auto_complete: bool) -> str:
        """What the server said in this mode; LOADS where it loaded."""
        return self.default if auto_complete or self.strict is None else self.strict

    def causes(self, *, auto_complete: bool) -> frozenset[str]:
        """The codes of the rules that must see it as refused in this mode."""
        return self.codes if auto_complete or self.strict_codes is None else self.strict_codes

    @property
    def text(self) -> str:
        """The config."""
        lines = {key: self.fields.get(key, line) for key, line in CONTROL.items()} | {key: line for key, line in self.fields.items() if key not in CONTROL}
        return "\n".join(line.replace("{name}", self.name) for line in lines.values() if line is not None) + "\n"

    def write(self, repository: Path) -> Path:
        """Put the case into a repository; its folder."""
        folder = repository / self.name
        folder.mkdir(parents=True)
        if self.config:
            (folder / "config.pbtxt").write_text(self.text)
        for path in self.files:
            target = folder / path
            if path.endswith("/"):
                target.mkdir()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_file(self.model))
        return folder


def _file(model: str) -> bytes:
    if model == "truncated":
        whole = build_onnx(MODELS["mlp"])
        return whole[: len(whole) * 2 // 3]
    return {"text": b"this is no model\n", "empty": b""}[model] if model not in MODELS else build_onnx(MODELS[model])


def _x(dims: str, dtype: str = "FP32", name: str = "x", more: str = "") -> str:
    return f'{{ name: "{name}" data_type: TYPE_{dtype} dims: {dims}{more} }}'


def _in(*tensors: str) -> dict[str, str | None]:
    return {"input": f"input [ {', '.join(tensors)} ]"}


def _out(*tensors: str) -> dict[str, str | None]:
    return {"output": f"output [ {', '.join(tensors)} ]"}


def _y(dims: str, dtype: str = "FP32", name: str = "y", more: str = "") -> str:
    return _x(dims, dtype, name, more)


def _warmup(
    batch: int, tensor: str = "", *, name: str = "x", dtype: str = "FP32", dims: str = "[ 64 ]", data: str = "zero_data: true"
) -> dict[str, str | None]:
    inputs = f'inputs {{ key: "{name}" value {{ data_type: TYPE_{dtype} dims: {dims} {data} }} }}'
    return {"model_warmup": f'model_warmup [ {{ name: "w" batch_size: {batch} {inputs} }} ]'}


def _accelerator(side: str, name: str) -> str:
    return f'optimization {{ execution_accelerators {{ {side}_execution_accelerator: [ {{ name: "{name}" }} ] }} }}'


def _parameter(key: str, text: str) -> dict[str, str | None]:
    return {"parameters": f'parameters {{ key: "{key}" value: {{ string_value: "{text}" }} }}'}


def _codes(*codes: str) -> frozenset[str]:
    return frozenset(codes)


_NO_BATCH: dict[str, str | None] = {"max_batch_size": "max_batch_size: 0"}
_ABSENT: dict[str, str | None] = {"max_batch_size": None}
_UNAVAILABLE = "at least one version must be available under the version policy of model '{name}'"
_UNREAD = "failed to read text proto from"
_NO_CONFIG = "config.pbtxt: No such file or directory"
_MISMATCH = "model '{name}', tensor '{tensor}': the model expects 2 dimensions (shape {model}) but the model configuration specifies {count} dimensions "
_BATCHED = "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape {shape})"
_FIRST = (
    "model '{name}', tensor '{tensor}': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; "
    "but shape expected by the model is {shape}"
)
_COUNT = "unable to load model '{name}', configuration expects {given} inputs, model provides {has}"


def _dims(tensor: str, model: str, shape: str) -> str:
    text = _MISMATCH.replace("{tensor}", tensor).replace("{model}", model).replace("{count}", str(shape.count(",") + 1))
    return text + _BATCHED.replace("{shape}", shape)


def _first(tensor: str, shape: str) -> str:
    return _FIRST.replace("{tensor}", tensor).replace("{shape}", shape)


def _count(given: int, has: int) -> str:
    return _COUNT.replace("{given}", str(given)).replace("{has}", str(has))


def _type(expected: str, provided: str) -> str:
    return f"unable to load model '{{name}}', configuration expects datatype {expected} for input 'x', model provides {provided}"


_UNBATCHED = "model '{name}', tensor 'x': the model expects 2 dimensions (shape [-1,64]) but the model configuration specifies 1 dimensions (shape [64])"
_NO_CONFIG_CODES = _codes("TG221")

PROBES: tuple[Probe, ...] = (
    Probe("c00_control"),
    Probe("c00b_control_backend", fields={"platform": 'backend: "onnxruntime"'}),
    Probe("c00c_noplat", fields={"platform": None}),
    Probe("c01c_in_rank", _dims("x", "[-1,64]", "[-1,64,1]"), _codes("TG344"), fields=_in(_x("[ 64, 1 ]"))),
    Probe("c01d_in_wild", _dims("x", "[-1,64]", "[-1,-1]"), _codes("TG344"), fields=_in(_x("[ -1 ]"))),
    Probe("c01e_out_wild", _dims("y", "[-1,16]", "[-1,-1]"), _codes("TG344"), fields=_out(_y("[ -1 ]"))),
    Probe("c01f_fix_dyn", _dims("y", "[-1,-1]", "[-1,64]"), _codes("TG344"), fields=_out(_y("[ 64 ]")), model="wide"),
    Probe("c01g_fix_dyn_ok", fields=_out(_y("[ -1 ]")), model="wide"),
    Probe("c02a_in_dtype", _type("TYPE_INT64", "TYPE_FP32"), _codes("TG343"), fields=_in(_x("[ 64 ]", "INT64"))),
    Probe("c02c_bad_enum", _UNREAD, _codes("TG211"), fields=_in(_x("[ 64 ]", "FLOAT32"))),
    Probe("c02e_bf16", "unsupported datatype TYPE_BF16 for input 'x' for model '{name}'", _codes("TG343"), fields=_in(_x("[ 64 ]", "BF16"))),
    Probe("c04a_mbs0_nobatch", _UNBATCHED, _codes("TG344"), fields=_NO_BATCH),
    Probe("c04b_mbs0_ok", fields={**_NO_BATCH, **_in(_x("[ -1, 64 ]")), **_out(_y("[ -1, 16 ]"))}),
    Probe("c04c_mbs_absent", _UNBATCHED, _codes("TG344"), fields=_ABSENT),
    Probe("c04d_mbs_neg", "'max_batch_size' must be non-negative value for {name}", _codes("TG260"), fields={"max_batch_size": "max_batch_size: -1"}),
    Probe("c04e_mbs0_fixN", fields={**_NO_BATCH, **_in(_x("[ 4, 64 ]")), **_out(_y("[ -1, 16 ]"))}),
    Probe("c05a_no_input", strict=_count(0, 1), strict_codes=_codes("TG341"), fields={"input": None}),
    Probe("c05b_one_of_two", _count(1, 2), _codes("TG341"), model="two inputs"),
    Probe("c05c_no_output", fields={"output": None}, fails=(_codes(), _codes("TG341"))),
    Probe("c05d_no_io", strict=_count(0, 1), strict_codes=_codes("TG341"), fields={"input": None, "output": None}),
    Probe("c05e_no_io_mbs0", strict=_count(0, 1), strict_codes=_codes("TG341"), fields={**_ABSENT, "input": None, "output": None}),
    Probe("c06b_extra_output", "unexpected inference output 'q', allowed outputs are: y", _codes("TG342"), fields=_out(_y("[ 16 ]"), _y("[ 16 ]", name="q"))),
    Probe(
        "c06c_extra_opt",
        "unable to load model '{name}', optional input 'q' is not supported for models that support batching",
        _codes("TG342", "TG347"),
        fields=_in(_x("[ 64 ]"), _x("[ 64 ]", name="q", more=" optional: true")),
    ),
    Probe("c07b_param_nan", "failed to convert 'abc' to integral number", _codes("TG300"), fields=_parameter("intra_op_thread_count", "abc")),
    Probe("c07d_field_unknown", _UNREAD, _codes("TG208", "TG213"), fields={"max_batchsize": "max_batchsize: 8"}),
    Probe(
        "c07e_param_execmode",
        "Invalid configuration value provided. Expected values for  execution_mode are 0 or 1 but got 7 .",
        _codes("TG300"),
        fields=_parameter("execution_mode", "7"),
    ),
    Probe("c07f_graphlevel", fields={"optimization": "optimization { graph { level: 99 } }"}, says=_codes("TG304")),
    Probe("c08a_acc_cpu_unknown", "unknown Execution Accelerator 'foo' is requested", _codes("TG290"), fields={"optimization": _accelerator("cpu", "foo")}),
    Probe("c08b_acc_gpu_unknown", fields={"optimization": _accelerator("gpu", "foo")}, says=_codes("TG291")),
    Probe("c09a_trt_gpu", fields={"optimization": _accelerator("gpu", "tensorrt")}, says=_codes("TG291")),
    Probe(
        "c09b_trt_gpu_kindcpu",
        fields={"optimization": _accelerator("gpu", "tensorrt"), "instance_group": "instance_group [ { kind: KIND_CPU } ]"},
        says=_codes("TG291"),
    ),
    Probe(
        "c09d_openvino",
        "unknown Execution Accelerator 'openvino' is requested",
        _codes("TG290"),
        fields={"optimization": _accelerator("cpu", "openvino")},
        refused_here=False,
        of_the_build=True,
    ),
    Probe(
        "c10a_pref16",
        "dynamic batching preferred size must be <= max batch size for {name}",
        _codes("TG261"),
        fields={"dynamic_batching": "dynamic_batching { preferred_batch_size: [ 16 ] }"},
    ),
    Probe(
        "c10b_pref0",
        "dynamic batching preferred size must be positive for {name}",
        _codes("TG261"),
        fields={"dynamic_batching": "dynamic_batching { preferred_batch_size: [ 0 ] }"},
    ),
    Probe(
        "c10c_dyn_mbs0",
        fields={**_NO_BATCH, **_in(_x("[ -1, 64 ]")), **_out(_y("[ -1, 16 ]")), "dynamic_batching": "dynamic_batching { }"},
        says=_codes("TG262"),
    ),
    Probe(
        "c11a_kindgpu",
        "instance group {name}_0 of model {name} has kind KIND_GPU but no GPUs are available",
        _codes("TG281"),
        fields={"instance_group": "instance_group [ { kind: KIND_GPU } ]"},
        refused_here=False,
    ),
    Probe("c11c_kindauto", fields={"instance_group": "instance_group [ { kind: KIND_AUTO } ]"}),
    Probe("c11d_kindmodel", fields={"instance_group": "instance_group [ { kind: KIND_MODEL } ]"}),
    Probe(
        "c11e_cpu_gpus",
        "instance group {name}_0 of model {name} has kind KIND_CPU but specifies one or more GPUs",
        _codes("TG280"),
        fields={"instance_group": "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]"},
    ),
    Probe("c12_plat", "unexpected platform type 'onnxruntime' for {name}", _codes("TG230"), fields={"platform": 'platform: "onnxruntime"'}),
    Probe(
        "c13b_backend_mismatch",
        "unexpected 'platform' and 'backend' pair, got:pytorch_libtorch, onnxruntime",
        _codes("TG231"),
        fields={"platform": 'backend: "onnxruntime"\nplatform: "pytorch_libtorch"'},
    ),
    Probe("c14_v1", _UNAVAILABLE, _codes("TG240"), files=("v1/model.onnx",)),
    Probe("c14b_v1_and_1", files=("1/model.onnx", "v1/model.onnx"), says=_codes("TG240")),
    Probe("c15_01", _UNAVAILABLE, _codes("TG240"), files=("01/model.onnx",)),
    Probe("c15b_0", files=("0/model.onnx",)),
    Probe("c15d_neg", "failed to stat file", _codes("TG241"), files=("-1/model.onnx",)),
    Probe("c16_empty", "failed to stat file", _codes("TG225"), files=("1/",)),
    Probe("c16b_none", _UNAVAILABLE, _codes("TG224"), files=()),
    Probe("c16c_policy", _UNAVAILABLE, _codes("TG243"), fields={"version_policy": "version_policy { specific { versions: [ 2 ] } }"}),
    Probe("c17_fn", "failed to stat file", _codes("TG226"), files=("1/mlp.onnx",)),
    Probe("c17b_fn_cfg", fields={"default_model_filename": 'default_model_filename: "mlp.onnx"'}, files=("1/mlp.onnx",)),
    Probe(
        "c17d_fn_nocfg",
        "Invalid model name: Could not determine backend for model '{name}' with no backend in model configuration",
        _codes("TG233"),
        strict=_NO_CONFIG,
        strict_codes=_NO_CONFIG_CODES,
        files=("1/mlp.onnx",),
        config=False,
    ),
    Probe(
        "c18b_outdims0",
        "model output 'y' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for {name}",
        _codes("TG252"),
        fields=_out(_y("[ 0 ]")),
    ),
    Probe(
        "c18c_dims_neg2",
        "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for {name}",
        _codes("TG252"),
        fields=_in(_x("[ -2 ]")),
    ),
    Probe("c18d_dims_absent", "model input 'x' must specify 'dims' for {name}", _codes("TG252"), fields=_in('{ name: "x" data_type: TYPE_FP32 }')),
    Probe("c19_out_typo", "unexpected inference output 'yy', allowed outputs are: y", _codes("TG342"), fields=_out(_y("[ 16 ]", name="yy"))),
    Probe("c19b_in_typo", "unexpected inference input 'xx', allowed inputs are: x", _codes("TG342"), fields=_in(_x("[ 64 ]", name="xx"))),
    Probe("c19c_case", "unexpected inference input 'X', allowed inputs are: x", _codes("TG342"), fields=_in(_x("[ 64 ]", name="X"))),
    Probe("c20a_wu_dim", "unexpected shape for input 'x' for model '{name}'. Expected [-1,64], got [1,63].", _codes("TG313"), fields=_warmup(1, dims="[ 63 ]")),
    Probe("c20b_wu_dtype", "inference input 'x' data-type is 'INT32', but model '{name}' expects 'FP32'", _codes("TG314"), fields=_warmup(1, dtype="INT32")),
    Probe(
        "c20c_wu_name",
        "expected 1 inputs but got 0 inputs for model '{name}'. Got input(s) [], but missing required input(s) ['x'].",
        _codes("TG315"),
        fields=_warmup(1, name="q"),
    ),
    Probe(
        "c20d_wu_batchdim",
        "unexpected shape for input 'x' for model '{name}'. Expected [-1,64], got [1,1,64].",
        _codes("TG313"),
        fields=_warmup(1, dims="[ 1, 64 ]"),
    ),
    Probe("c20f_wu_file", "failed to open text file for read", _codes("TG317"), fields=_warmup(1, data='input_data_file: "nofile"')),
    Probe(
        "c21a_wu_batch16",
        "failed to run warmup sample 'w': batch size 16 for '{name}_1', max allowed is 8",
        _codes("TG311"),
        fields=_warmup(16),
        crashes=True,
    ),
    Probe("c21b_wu_batch0", fields=_warmup(0), says=_codes("TG310")),
    Probe("c22a_dup_in", _count(2, 1), _codes("TG257"), fields=_in(_x("[ 64 ]"), _x("[ 64 ]"))),
    Probe("c22b_dup_out", fields=_out(_y("[ 16 ]"), _y("[ 16 ]")), says=_codes("TG257")),
    Probe("c23a_fixed_mbs8", _first("x", "[1,64]"), _codes("TG345"), model="fixed"),
    Probe("c23b_fixed_mbs1", _first("x", "[1,64]"), _codes("TG345"), fields={"max_batch_size": "max_batch_size: 1"}, model="fixed"),
    Probe("c23c_fixed_mbs0", fields={**_NO_BATCH, **_in(_x("[ 1, 64 ]")), **_out(_y("[ 1, 16 ]"))}, model="fixed"),
    Probe("c23d_fixed_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, model="fixed", config=False),
    Probe("c24_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, config=False),
    Probe("c24c_syntax", _UNREAD, _codes("TG201"), fields={"instance_group": "instance_group [ { kind: KIND_CPU }"}),
    Probe(
        "c25_name",
        "unexpected directory name '{name}' for model 'other', directory name must equal model name",
        _codes("TG238"),
        fields={"name": 'name: "other"'},
    ),
    Probe("c26a_twonb_mbs8", _first("b", "[64]"), _codes("TG345"), fields=_in(_x("[ 64 ]"), _x("[ 64 ]", name="b")), model="batch and none"),
    Probe("c26b_twonb_mbs0", fields={**_NO_BATCH, **_in(_x("[ -1, 64 ]"), _x("[ 64 ]", name="b")), **_out(_y("[ -1, 16 ]"))}, model="batch and none"),
    Probe("c27a_fp16_as32", _type("TYPE_FP32", "TYPE_FP16"), _codes("TG343"), model="fp16"),
    Probe("c27b_fp16_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, model="fp16", config=False),
    Probe("c28a_scalar_mbs8", fields=_out(_y("[ 1 ]")), model="scalar", fails=(_codes("TG346"), _codes("TG346"))),
    Probe("c28d_scalar_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, model="scalar", config=False),
    Probe(
        "c28e_scalar_mbs0_2",
        "unable to load model '{name}', scalar tensor 'y', should only provide 1 in the model configuration when the model doesn't support batching. "
        "Model configuration provided: [2].",
        _codes("TG346"),
        fields={**_NO_BATCH, **_in(_x("[ -1, 64 ]")), **_out(_y("[ 2 ]"))},
        model="scalar",
    ),
    Probe(
        "c28f_scalar_reshape",
        "model output 'y' cannot have empty reshape for non-batching model as scalar tensors are not supported for {name}",
        _codes("TG253"),
        fields={**_NO_BATCH, **_in(_x("[ -1, 64 ]")), **_out(_y("[ 1 ]", more=" reshape { shape: [ ] }"))},
        model="scalar",
    ),
    Probe("c29a_string_ok", fields={**_in(_x("[ 1 ]", "STRING")), **_out(_y("[ 1 ]", "STRING"))}, model="string"),
    Probe("c29b_string_bytes", _UNREAD, _codes("TG211"), fields={**_in(_x("[ 1 ]", "BYTES")), **_out(_y("[ 1 ]", "BYTES"))}, model="string"),
    Probe(
        "c29c_string_uint8",
        _type("TYPE_UINT8", "TYPE_BYTES"),
        _codes("TG343"),
        fields={**_in(_x("[ 1 ]", "UINT8")), **_out(_y("[ 1 ]", "UINT8"))},
        model="string",
    ),
    Probe("c29d_string_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, model="string", config=False),
    Probe("c30a_out2_omit", model="two outputs"),
    Probe("c30b_out2_nocfg", strict=_NO_CONFIG, strict_codes=_NO_CONFIG_CODES, model="two outputs", config=False),
    Probe("c31a_trunc", "onnx runtime error 7: Load model from", _codes("TG340"), model="truncated"),
    Probe("c31b_garbage", "Protobuf parsing failed.", _codes("TG340"), model="text"),
    Probe("c31c_empty", "failed:", _codes("TG340"), model="empty"),
    Probe("c31e_opset26", "Current official support for domain ai.onnx is till opset 21.", _codes("TG349"), model="opset 26", refused_here=False),
)
"""The record, in its order."""
