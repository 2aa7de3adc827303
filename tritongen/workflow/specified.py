"""What a spec says of one of its models, as the stages want it: a collector for findings, the release, values for inputs, label files."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tritongen.diagnostics import Diagnostic, Location
from tritongen.errors import SpecError
from tritongen.releases import Release
from tritongen.render import Findings
from tritongen.render.items import has_batch_axis
from tritongen.render.ragged import as_requested
from tritongen.samples import Array, SampleError, as_array
from tritongen.samples.files import Wanted, items_of, load_array
from tritongen.signature import Signature
from tritongen.spec import LoadedSpec, ModelSpec
from tritongen.spec.paths import expand
from tritongen.spec.samples import SampleFiles, SampleOrFiles
from tritongen.spec.shapes import ShapeRange


def findings_of(loaded: LoadedSpec, index: int) -> Findings:
    """A collector for the model with this index."""
    prefix = ("models", index)
    return Findings(loaded.spec.models[index].name, lambda key: loaded.locate((*prefix, *key)), lambda key: loaded.is_inherited((*prefix, *key)))


def placed_at(diagnostic: Diagnostic, model: str, source: Location) -> Diagnostic:
    """What is wrong with a model's file, at the place in the spec that names the file."""
    if diagnostic.location is None or diagnostic.location.path == source.path:
        return dataclasses.replace(diagnostic, model=model, location=diagnostic.location or source)
    return dataclasses.replace(diagnostic, model=model, location=source, message=f"{diagnostic.location}: {diagnostic.message}")


def release_of(loaded: LoadedSpec) -> Release | None:
    """The release that the repository is made for; None for one that is not known."""
    return loaded.spec.triton.known_release


def samples_of(loaded: LoadedSpec, index: int, signature: Signature, findings: Findings) -> dict[str, Array]:
    """The spec's values for inputs, as arrays of one item each; those that a plan is tuned for are among them."""
    model = loaded.spec.models[index]
    batched = has_batch_axis(model, signature)
    signature = as_requested(model, signature)
    arrays: dict[str, Array] = {}
    for name, value in model.known_samples.items():
        # What is wrong with the range of a shape tensor is said of the plan's profiles.
        said = findings if name in model.samples else dataclasses.replace(findings, found=[])
        tensor = next((tensor for tensor in signature.inputs if tensor.name == name), None)
        if tensor is None:
            known = ", ".join(repr(tensor.name) for tensor in signature.inputs)
            said.error("TG103", ("samples", name), f"the model has no input '{name}'", hint=f"its inputs are {known}")
            continue
        shape = None if tensor.shape is None else tensor.dims[1:] if batched else tensor.dims
        try:
            arrays[name] = _sample(loaded, value, Wanted(name, tensor.dtype, shape), model.known_shapes.get(name))
        except SampleError as error:
            in_files = isinstance(value, SampleFiles)
            what = "without the batch dimension" if batched else "in the model's own shape"
            hint = f"correct the files, or how they are read; an item is {what}" if in_files else f"give one item, {what}"
            place = ("samples", name, "files") if in_files else ("samples", name)
            said.error("TG116", place, f"the value does not fit {tensor.describe()}: {error}", hint=hint)
    return arrays


def _sample(loaded: LoadedSpec, value: SampleOrFiles, wanted: Wanted, shape: ShapeRange | None) -> Array:
    """One item of an input; the first one of files."""
    is_file = isinstance(value, str) and value.endswith(".npy")
    if not is_file and not isinstance(value, SampleFiles):
        return as_array(value, wanted.dtype, wanted.item)
    path = expand(value.files if isinstance(value, SampleFiles) else str(value), loaded.folder)
    assert isinstance(path, Path), "load_spec has checked the sample files"
    if not isinstance(value, SampleFiles):
        return as_array(load_array(path), wanted.dtype, wanted.item)
    return items_of(path, value, wanted)[0].array(shape.opt if shape is not None else ())


def label_files(loaded: LoadedSpec, model: ModelSpec) -> dict[str, bytes]:
    """The label files of a model, by output. Raises SpecError for one that cannot be read."""
    contents = {}
    for output, text in model.labels.items():
        path = expand(text, loaded.folder)
        assert isinstance(path, Path), "load_spec has checked the label files"
        try:
            contents[output] = path.read_bytes()
        except OSError as error:
            raise SpecError(
                [Diagnostic("TG016", f"the label file cannot be read: {error.strerror}", Location(str(path)), hint="check its permissions")]
            ) from error
    return contents
