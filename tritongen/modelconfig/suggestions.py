"""What was probably meant by a field's or an enum value's name that Triton does not know.

Sources: the names that other tools and formats use for the same thing (ONNX, numpy, PyTorch, KServe, Triton's own wire protocol and its JSON), camelCase,
plurals, and, failing these, the closest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tritongen.dtypes import DTYPES
from tritongen.modelconfig.fields import FieldTable, Kind, MessageTable

_CUTOFF = 0.72
_DEEPEST_MOVE = 3

_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "type": ("data_type", "kind"),
    "dtype": ("data_type",),
    "datatype": ("data_type",),
    "elemtype": ("data_type",),
    "shape": ("dims", "dim"),
    "shapes": ("dims", "dim"),
    "dimension": ("dims", "dim"),
    "dimensions": ("dims", "dim"),
    "maxbatch": ("max_batch_size",),
    "maxbatchsizes": ("max_batch_size",),
    "modelname": ("name",),
    "model": ("model_name",),
    "val": ("value",),
    "instance": ("instance_group",),
    "instances": ("instance_group",),
    "deviceids": ("gpus",),
    "gpuids": ("gpus",),
    "gpuid": ("gpus",),
    "num": ("count",),
    "replicas": ("count",),
    "instancecount": ("count",),
    "devicetype": ("kind",),
    "maxqueuedelayus": ("max_queue_delay_microseconds",),
    "inputmapping": ("input_map",),
    "outputmapping": ("output_map",),
    "steps": ("step",),
    "modelfilename": ("default_model_filename",),
    "labelfile": ("label_filename",),
    "dynamicbatcher": ("dynamic_batching",),
    "sequencebatcher": ("sequence_batching",),
    "warmup": ("model_warmup",),
    "warmups": ("model_warmup",),
    "optimisation": ("optimization",),
    "optimisations": ("optimization",),
    "params": ("parameters",),
    "param": ("parameters",),
    "stringparam": ("string_value",),
}
"""Names that mean the same, so that one can be put for the other. Of several, the message has one."""

_RELATED_NAMES: dict[str, tuple[str, ...]] = {
    "inputs": ("input_map",),
    "outputs": ("output_map",),
    "batchsize": ("max_batch_size",),
    "group": ("instance_group",),
    "device": ("gpus", "kind"),
    "devices": ("gpus",),
    "maxqueuedelay": ("max_queue_delay_microseconds",),
    "maxqueuedelayms": ("max_queue_delay_microseconds",),
    "queuedelay": ("max_queue_delay_microseconds",),
    "preferredsize": ("preferred_batch_size",),
    "models": ("step",),
    "filename": ("default_model_filename", "label_filename"),
    "modelfile": ("default_model_filename",),
    "labels": ("label_filename",),
    "batching": ("dynamic_batching",),
    "batcher": ("dynamic_batching",),
    "ensemble": ("ensemble_scheduling",),
    "ensemblescheduler": ("ensemble_scheduling",),
    "cache": ("response_cache",),
    "accelerators": ("execution_accelerators",),
    "gpuaccelerator": ("gpu_execution_accelerator",),
    "cpuaccelerator": ("cpu_execution_accelerator",),
    "transactionpolicy": ("model_transaction_policy",),
    "metrics": ("model_metrics",),
    "agents": ("model_repository_agents", "agents"),
    "versions": ("version_policy", "versions"),
    "version": ("model_version", "version_policy"),
    "policy": ("version_policy",),
    "framework": ("platform", "backend"),
    "intvalue": ("string_value",),
    "int64value": ("string_value",),
    "int64param": ("string_value",),
    "boolvalue": ("string_value",),
    "boolparam": ("string_value",),
    "floatvalue": ("string_value",),
    "doublevalue": ("string_value",),
    "value": ("string_value",),
    "timeout": ("default_timeout_microseconds",),
    "timeoutmicroseconds": ("default_timeout_microseconds",),
    "queuesize": ("max_queue_size",),
    "data": ("input_data_file", "data_file"),
    "k": ("key",),
    "v": ("value",),
}
"""Names behind which people look for a field, and whose value may be another (another unit, a part of it)."""

_LIKELY = ("dynamic_batching", "instance_group", "input", "optimization", "version_policy")
"""Where people mean a field to be that several messages have."""

_OTHER_DTYPES = {
    "float": "TYPE_FP32",
    "double": "TYPE_FP64",
    "half": "TYPE_FP16",
    "bfloat": "TYPE_BF16",
    "int": "TYPE_INT32",
    "integer": "TYPE_INT32",
    "long": "TYPE_INT64",
    "short": "TYPE_INT16",
    "byte": "TYPE_UINT8",
    "char": "TYPE_INT8",
    "boolean": "TYPE_BOOL",
    "str": "TYPE_STRING",
    "string": "TYPE_STRING",
    "bytes": "TYPE_STRING",
    "object": "TYPE_STRING",
    "fp": "TYPE_FP32",
}


class Meant(NamedTuple):
    """A guess at a field.

    Attributes:
        field: the field that was meant.
        sure: True where nothing else can have been meant, so that the name may be replaced without asking.
        up: how many messages further out the field belongs; 0 for none.
        down: the fields that lead further in to the message it belongs to; empty for none.
    """

    field: FieldTable
    sure: bool
    up: int = 0
    down: tuple[str, ...] = ()


def meant_field(name: str, tables: Sequence[MessageTable], given: frozenset[str] = frozenset()) -> Meant | None:
    """What a name meant that the last of `tables` has no field for; the tables before it are those of the messages around, from the outermost on.

    `given` are the names of the fields that the message holds: of two places, one that is there already is preferred.
    """
    table = tables[-1]
    plain = _plain(name)
    for names, sure in ((_OTHER_NAMES, True), (_RELATED_NAMES, False)):
        for other in names.get(plain, ()):
            if other in table.fields:
                return Meant(table.fields[other], sure)
    spelled = {_plain(known): field for known, field in table.fields.items()}
    for candidate in (plain, plain + "s", plain.removesuffix("s"), plain.removesuffix("es"), "model" + plain):
        if candidate in spelled:
            return Meant(spelled[candidate], sure=True)
    for up in range(1, len(tables)):
        if name in tables[-1 - up].fields:
            return Meant(tables[-1 - up].fields[name], sure=False, up=up)
    places = sorted(_places_inside(name, table, ()), key=lambda place: (place[0][0] not in given, place[0][0] not in _LIKELY, len(place[0])))
    if places:
        return Meant(places[0][1], sure=False, down=places[0][0])
    close = difflib.get_close_matches(name, table.fields, n=1, cutoff=_CUTOFF)
    return Meant(table.fields[close[0]], sure=False) if close else None


def _places_inside(name: str, table: MessageTable, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldTable]]:
    """The paths of fields below a message under which a field of this name exists."""
    for field in table.fields.values():
        if field.message is None or field.is_map:
            continue
        if name in field.message.fields:
            yield (*path, field.name), field.message.fields[name]
        if len(path) + 1 < _DEEPEST_MOVE:
            yield from _places_inside(name, field.message, (*path, field.name))


def meant_enum(name: str, field: FieldTable) -> tuple[str, bool] | None:
    """The value of an enum that was meant, and whether nothing else can have been; None where no guess is good enough."""
    names = list(field.enum_values)
    if field.enum_name == "DataType":
        word = name.casefold().replace("_", "").removeprefix("type").removeprefix("tensorproto.")
        for dtype in DTYPES:
            if word in (dtype.wire.casefold(), dtype.numpy_name, dtype.config.removeprefix("TYPE_").casefold()):
                return dtype.config, True
        if (found := _OTHER_DTYPES.get(word)) is not None:
            return found, word not in ("fp", "int", "integer", "bfloat")
    by_plain = {_plain(known): known for known in names}
    prefix = names[0].split("_", 1)[0]
    for candidate in (_plain(name), _plain(f"{prefix}_{name}")):
        if candidate in by_plain:
            return by_plain[candidate], True
    close = difflib.get_close_matches(name.upper(), names, n=1, cutoff=0.6)
    return (close[0], False) if close else None


def example(field: FieldTable) -> str:
    """How a value of the field is written."""
    if field.kind is Kind.ENUM:
        return "TYPE_FP32" if field.enum_name == "DataType" else list(field.enum_values)[min(1, len(field.enum_values) - 1)]
    if field.kind is Kind.MESSAGE:
        return "{ ... }"
    return {Kind.STRING: '"text"', Kind.INT: "8", Kind.FLOAT: "0.5", Kind.BOOL: "true"}[field.kind]


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")
