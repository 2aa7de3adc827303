"""`optimize`: ONNX Runtime's optimised graph, saved, so that a server need not make it at every load.

Levels as ONNX Runtime's documentation has them ("Graph Optimizations in ONNX Runtime"): `basic` keeps to operators of ONNX and holds for every provider;
`extended` fuses into ONNX Runtime's own operators, for the provider it ran with (here the CPU); `all` also changes the layout for the machine at hand.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnx

from tritongen.diagnostics import Diagnostic
from tritongen.errors import ModelFileError
from tritongen.proof import DEFAULT_LIMIT_BYTES, RuntimeErrors, model_bytes, open_session, reason_of, run, why_not_provable
from tritongen.rewrite.document import Rewritten, graphs, load, problem, save, writing
from tritongen.rewrite.running import allowed, candidate_rows, deviation, first_that_runs, largest
from tritongen.signature import Signature

LEVELS = ("basic", "extended", "all")

_EMBEDDABLE_BYTES = 1 << 30  # a protobuf file ends at 2 GiB, and folding constants may make a graph larger
_OWN_FILE_FROM_BYTES = "1024"
_ONNX_DOMAINS = ("", "ai.onnx", "ai.onnx.ml")
_MICROSOFT = "com.microsoft"
_MACHINE_DOMAINS = ("com.microsoft.nchwc", "com.ms.internal.nhwc")

# First ONNX Runtime with each operator that its CPU optimisers write (its docs/ContribOperators.md and release notes). 1.16 is the oldest of any release in
# `tritongen.releases`; what is in neither set is refused for a named version rather than guessed.
_SINCE_1_16 = frozenset({
    "Attention", "BiasDropout", "BiasGelu", "BiasSoftmax", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "EmbedLayerNormalization", "FastGelu",
    "FusedConv", "FusedGemm", "FusedMatMul", "Gelu", "MatMulIntegerToFloat", "MultiHeadAttention", "NhwcMaxPool", "QAttention",
    "QEmbedLayerNormalization", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu",
    "QLinearMul", "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QuickGelu", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization", "TransposeMatMul",
})  # fmt: skip
_LATER = {"MatMulNBits": (1, 17), "GatherBlockQuantized": (1, 20)}
# Operators that ONNX Runtime keeps in ONNX's domain though ONNX has none of that name there.
_IN_ONNX_DOMAIN = ("SimplifiedLayerNormalization",)


def optimize(
    path: Path,
    target: Path,
    *,
    level: str = "basic",
    hardware: str = "",
    onnxruntime: str = "",
    shapes: Mapping[str, Sequence[int]] | None = None,
    samples: Mapping[str, object] | None = None,
    tolerance: float = 1e-5,
    seed: int = 0,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Rewritten:
    """Has ONNX Runtime optimise the model at `path` on the CPU, writes the graph to `target`, and checks its answers against the original's.

    A model with external data, or close to protobuf's limit, gets its weights in a new file `<target's name>.data` beside it.

    Args:
        path: the ONNX model.
        target: the file to write.
        level: `basic`, `extended` or `all`.
        hardware: for `all`, the machine that the result is made for; it must be run on such a machine.
        onnxruntime: version of ONNX Runtime that will load the result (`1.23.0`; `tritongen.releases` has that of each release); "" for any.
        shapes: full shapes of inputs with variable dimensions, for the check. Where none is given, some usual lengths are tried.
        samples: whole values for inputs that cannot be guessed, for the check.
        tolerance: the largest difference allowed between floats, as a part of the answer's largest value.
        seed: of the check's random inputs.
        limit_bytes: models above this size (with external data) are refused, since they must be loaded.

    Raises:
        ModelFileError: TG020 to TG037 for an unusable file; TG151 shapes or samples that fit no input; TG156 a level that is unknown, or that is not portable
            and names no hardware; TG157 operators that the target version lacks; TG158 answers that differ; TG159 a model that ONNX Runtime cannot optimise or
            run; TG164 a target that cannot be written.
    """
    if level not in LEVELS:
        raise ModelFileError([problem("TG156", path, f"there is no optimisation level '{level}'", f"the levels are {', '.join(LEVELS)}")])
    if level == "all" and not hardware:
        message = "the level 'all' lays the graph out for the machine it runs on, and no machine is named"
        raise ModelFileError(
            [problem("TG156", path, message, "use level 'extended', or name the hardware", "on another processor the graph runs slowly or not at all")]
        )
    original, signature = load(path)
    external = sorted({data.location for data in signature.external_data})
    skipped = why_not_provable(path, limit_bytes=limit_bytes, external=external)
    if skipped:
        message = f"the model cannot be optimised here: {skipped}"
        raise ModelFileError([problem("TG159", path, message, "mend that, or let the server optimise the model at load")])
    apart = bool(external) or model_bytes(path) > _EMBEDDABLE_BYTES
    with writing(path, target), tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        staged = Path(folder) / target.name
        data = _optimise(path, staged, level, apart=apart)
        model = onnx.load(str(staged), load_external_data=False)
        _restore(model, original, signature)
        problems = list(_foreign(path, model, original, level, onnxruntime))
        if problems:
            raise ModelFileError(problems)
        staged.write_bytes(model.SerializeToString(deterministic=True))
        found = _check(path, staged, signature, shapes or {}, samples or {}, tolerance, seed)
        notes = _notes(original, model, level, hardware)
        notes.append(f"its answers on seeded inputs differ from the original's by at most {found:.2g} of their largest value")
        return save(model, path, target, notes, beside=data)


def _optimise(path: Path, staged: Path, level: str, *, apart: bool) -> Path | None:
    """Let ONNX Runtime write its graph to `staged`; the file with its weights, where they are kept apart."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    enum = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = {"basic": enum.ORT_ENABLE_BASIC, "extended": enum.ORT_ENABLE_EXTENDED, "all": enum.ORT_ENABLE_ALL}[level]
    options.optimized_model_filepath = str(staged)
    data = staged.with_name(f"{staged.name}.data")
    if apart:
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", data.name)
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", _OWN_FILE_FROM_BYTES)
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except RuntimeErrors() as error:
        message = f"ONNX Runtime cannot optimise the model: {reason_of(error)}"
        raise ModelFileError([problem("TG159", path, message, "export it again, or serve it as it is", "Triton most likely refuses to load it")]) from error
    return data if apart and data.exists() else None


def _restore(model: onnx.ModelProto, original: onnx.ModelProto, signature: Signature) -> None:
    """Put back what ONNX Runtime drops (metadata, producer), and take out what it adds without need (operator sets nobody uses)."""
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if original.HasField(field):
            setattr(model, field, getattr(original, field))
    del model.metadata_props[:]
    model.metadata_props.extend(original.metadata_props)
    used = {domain for domain, _ in _operators(model)} | {node.domain for function in model.functions for node in function.node}
    used |= {entry.domain for entry in original.opset_import}
    kept = sorted((entry for entry in model.opset_import if entry.domain in used), key=lambda entry: entry.domain)
    del model.opset_import[:]
    model.opset_import.extend(kept)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    required = {tensor.name for tensor in signature.inputs}
    inputs = [value for value in model.graph.input if value.name in required or value.name in stored]
    if model.ir_version < 4:  # before it every initializer had to be listed as an input
        listed = {value.name for value in inputs}
        inputs += [onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)) for name, tensor in stored.items() if name not in listed]
    del model.graph.input[:]
    model.graph.input.extend(inputs)


def _operators(model: onnx.ModelProto) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op_type) for graph in graphs(model.graph) for node in graph.node)


def _foreign(path: Path, model: onnx.ModelProto, original: onnx.ModelProto, level: str, version: str) -> Iterator[Diagnostic]:
    """New operators that the level should not have made, or that the target version may lack."""
    consequence = "Triton refuses to load the model"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    for domain, name in sorted(_operators(model).keys() - _operators(original).keys()):
        if domain in _ONNX_DOMAINS and name not in _IN_ONNX_DOMAIN:
            continue
        if level == "basic" or (level == "extended" and domain in _MACHINE_DOMAINS):
            message = f"at level '{level}' this ONNX Runtime writes the operator {domain or 'ai.onnx'}.{name}, which is not portable"
            yield problem("TG157", path, message, "use level 'extended' for the onnxruntime backend, or let the server optimise the model at load", consequence)
        elif domain == _MICROSOFT and numbers and name not in _SINCE_1_16:
            since = _LATER.get(name)
            if since is None or numbers < since:
                why = "it is not known which ones have it" if since is None else f"it came with {since[0]}.{since[1]}"
                message = f"the optimised graph has the operator {domain}.{name}, and ONNX Runtime {version} may lack it: {why}"
                yield problem("TG157", path, message, "use level 'basic', or a newer release", consequence)


def _check(
    path: Path, staged: Path, signature: Signature, shapes: Mapping[str, Sequence[int]], samples: Mapping[str, object], tolerance: float, seed: int
) -> float:
    """The largest difference between both models' answers. Raises ModelFileError (TG158, TG159) where it is too large or cannot be told."""
    try:
        first, second = open_session(path), open_session(staged)
        rows, reason = first_that_runs(first, candidate_rows(path, signature, 1, shapes, samples, seed, batched=False), batched=False)
        if rows is None:
            message = f"the optimised model cannot be checked, since the original does not run on random inputs: {reason}"
            raise ModelFileError([problem("TG159", path, message, "give shapes and samples that the model accepts")])
        want, got = run(first, rows.item()), run(second, rows.item())
    except RuntimeErrors() as error:
        message = f"ONNX Runtime does not run the optimised model: {reason_of(error)}"
        raise ModelFileError([problem("TG159", path, message, "use level 'basic', or serve the model as it is")]) from error
    problems = []
    worst = 0.0
    for name, array in want.items():
        found = deviation(array, got[name], largest(array))
        worst = max(worst, found)
        if found > allowed(tolerance, array):
            message = f"output '{name}' of the optimised model differs by {found:.2g} of its largest value (allowed: {allowed(tolerance, array):.2g})"
            problems.append(problem("TG158", path, message, "use level 'basic', a larger tolerance, or the model as it is", "clients would get other answers"))
    if problems:
        raise ModelFileError(problems)
    return worst


def _notes(original: onnx.ModelProto, model: onnx.ModelProto, level: str, hardware: str) -> list[str]:
    before, after = _operators(original), _operators(model)
    notes = [f"ONNX Runtime's level '{level}' made {sum(after.values())} nodes of {sum(before.values())}"]
    for word, counts in (("gone", before - after), ("new", after - before)):
        if counts:
            notes.append(f"{word}: {', '.join(f'{count} {domain + chr(46) if domain else str()}{name}' for (domain, name), count in sorted(counts.items()))}")
    if any(domain not in _ONNX_DOMAINS for domain, _ in after - before):
        notes.append("some operators are ONNX Runtime's own, fused for the CPU provider: only the onnxruntime backend loads them, and a GPU may lack some")
    if level == "all":
        notes.append(f"its layout is made for {hardware}")
    return notes
