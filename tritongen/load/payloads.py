"""The requests of a load test, made before the clock starts: arrays by the plan's mixes, from given data or seeded random values."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritongen.client.metadata import ModelMeta
from tritongen.client.requests import prepare
from tritongen.load.plan import LoadPlan, problem
from tritongen.samples import Array, SampleError, as_array, random_values

_KINDS = (".npy",)


@dataclass(frozen=True)
class Payload:
    """One request's inputs. `label` says which entry of the mixes it is of."""

    arrays: Mapping[str, Array]
    rows: int
    label: str


def make_pool(plan: LoadPlan, meta: ModelMeta, known: Mapping[str, Sequence[int]], samples: Mapping[str, object]) -> list[Payload]:
    """The plan's pool of payloads, in the order in which they are sent round and round.

    Args:
        plan: mixes, data, size and seed of the pool.
        meta: what the server says about the model.
        known: sizes of one item by input, for inputs with variable dimensions that the mixes leave out.
        samples: values of inputs that cannot be guessed.

    Raises InputError (TG420) where sizes are missing or data does not fit, InvalidInput where a request does not.
    """
    rng = np.random.default_rng(plan.seed)
    order = random.Random(plan.seed)  # noqa: S311 - no secret
    given = _read(plan.data, meta)
    batches = [rows for rows, _ in plan.batch_mix]
    shapes = plan.shape_mix or (({}, 1.0),)
    pool = []
    for index in range(plan.pool):
        rows = order.choices(batches, [part for _, part in plan.batch_mix])[0]
        chosen = order.choices([entry for entry, _ in shapes], [part for _, part in shapes])[0]
        arrays = {tensor.name: _input(meta, tensor.name, rows, {**known, **chosen}, given, samples, index, rng) for tensor in meta.inputs}
        prepared = prepare(meta, arrays)
        if meta.max_batch_size and rows > meta.max_batch_size:
            hint = "write a --batch-mix of smaller ones, or fewer `rows` of a Locust user"
            raise problem(f"a batch of {rows} rows is more than the model takes ({meta.max_batch_size})", hint)
        pool.append(Payload(prepared.arrays, rows if meta.max_batch_size else 1, f"{rows} rows" if meta.max_batch_size else ""))
    return pool


def _input(
    meta: ModelMeta,
    name: str,
    rows: int,
    sizes: Mapping[str, Sequence[int]],
    given: Mapping[str, Array],
    samples: Mapping[str, object],
    index: int,
    rng: np.random.Generator,
) -> Array:
    tensor = meta.inputs_by_name[name]
    batched = meta.max_batch_size > 0
    item = tensor.shape[1:] if batched else tensor.shape
    if name in given:
        data = given[name]
        if not batched:
            return data
        return np.take(data, [(index * rows + row) % len(data) for row in range(rows)], axis=0)
    if name in samples:
        try:
            one = as_array(samples[name], tensor.dtype, item)
        except SampleError as error:
            raise problem(f"the sample of input '{name}' does not fit: {error}", "correct it in the spec's samples") from error
        return np.repeat(one[np.newaxis], rows, axis=0) if batched else one
    shape = tuple(sizes.get(name, item))
    if len(shape) != len(item) or -1 in shape:
        example = "x".join("?" if size == -1 else str(size) for size in item)
        hint = f"give it with --shape-mix {name}={example}, as `shapes` of a Locust user, or in the spec's shapes"
        raise problem(f"the size of input '{name}' {list(item)} is not known", hint)
    return random_values(tensor.dtype, (rows, *shape) if batched else shape, rng)


def _read(data: str, meta: ModelMeta) -> dict[str, Array]:
    """Arrays by input name from a .npz file, or from a folder with NAME.npy files; rows first where the model batches."""
    if data == "random":
        return {}
    path = Path(data)
    try:
        if path.is_dir():
            found = {file.stem: np.load(file, allow_pickle=False) for file in sorted(path.iterdir()) if file.suffix in _KINDS}
        else:
            with np.load(path, allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError) as error:
        raise problem(f"{data} cannot be read: {error}", "give a .npz file, or a folder of NAME.npy files, with one array for each input") from error
    unknown = sorted(found.keys() - meta.inputs_by_name.keys())
    if unknown or not found:
        have = ", ".join(meta.inputs_by_name)
        what = f"{data} has arrays that are no inputs: {', '.join(unknown)}" if unknown else f"{data} has no arrays"
        raise problem(what, f"name them as the model's inputs: {have}")
    return {name: as_array(array, meta.inputs_by_name[name].dtype, None) for name, array in found.items()}
