"""The requests of a load test, made before the clock starts: arrays by the plan's mixes, from files, samples or seeded random values."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tritongen.client.metadata import ModelMeta, TensorMeta
from tritongen.client.requests import array_bytes, prepare
from tritongen.diagnostics import Diagnostic
from tritongen.errors import InputError
from tritongen.load.plan import LoadPlan, ModelLoad, problem
from tritongen.samples import Array, SampleError, as_array, random_values
from tritongen.samples.files import Item, Wanted, array_items, items_of, load_archive, load_array
from tritongen.spec.samples import SampleFiles
from tritongen.spec.scenarios import RANDOM

MOST_POOL_BYTES = 1 << 30
"""Memory for the requests to one model in one process."""
_TEXT_BYTES = 4
"""A text takes at least its length in a request."""
_MOST_PROBLEMS = 10

Sizes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class _Request:
    """One request before its arrays are made: rows, sizes by input, and the number of its first item of files."""

    rows: int
    sizes: Sizes
    first: int


@dataclass
class _Given:
    """What is known of the inputs: items of files, in the order in which they are sent, and single values."""

    items: dict[str, Sequence[Item]] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Payloads:
    """The requests to one model.

    Attributes:
        requests: arrays by input name, in the order in which they are sent round and round.
        left_out: what the files that were given have not, in sentences.
    """

    requests: Sequence[Mapping[str, Array]]
    left_out: tuple[str, ...] = ()


def check_plain_requests(meta: ModelMeta) -> None:
    """Raise InputError (TG420) for a model that is not asked by single requests with one answer each: a decoupled one, or one that takes sequences only."""
    if meta.decoupled:
        raise problem(
            f"the model {meta.name!r} is decoupled: a request has any number of responses, and Triton refuses it outside of a stream, so that all would fail",
            "write a locustfile with stream() of TritonGrpcUser, such as loadtests/streaming.py",
            model=meta.name,
        )
    if meta.is_stateful:
        raise problem(
            f"the model {meta.name!r} takes requests of a sequence only (sequence_batching), and those of a load test belong to none, so that all would fail",
            "write a locustfile whose tasks send sequences: with self.client.sequence(self.model) as sequence: self.infer(sequence=sequence)",
            model=meta.name,
        )


def make_pool(plan: LoadPlan, load: ModelLoad, meta: ModelMeta) -> Payloads:
    """The requests to one model.

    Sizes that neither the mixes nor the files give are those of the model's own warmup; values that the config carries stand for inputs that have no sample.
    Raises InputError: TG420 where sizes are missing or mixes do not fit, TG423 where data does not; InvalidInput where a request does not fit the model.
    """
    rng = np.random.default_rng(plan.seed)
    order = random.Random(plan.seed)  # noqa: S311 - no secret
    _check_rows(load, meta)
    _check_inputs(load, meta)
    given = _given(load, meta, order)
    pool: list[Mapping[str, Array]] = []
    used, read = 0, _Reader(meta, given)
    for request in _requests(plan, load, meta, order):
        if used + read.used + sum(_least_bytes(meta, tensor, request, given) for tensor in meta.inputs) > MOST_POOL_BYTES:
            raise _too_large(plan, meta, len(pool))
        arrays = {tensor.name: _input(meta, tensor, request, given, read, rng) for tensor in meta.inputs}
        if read.problems:
            continue  # only to find what else cannot be read
        pool.append(prepare(meta, arrays).arrays)
        used += sum(map(array_bytes, pool[-1].values()))
        if used + read.used > MOST_POOL_BYTES:
            raise _too_large(plan, meta, len(pool) - 1)
    if read.problems:
        raise InputError(read.problems[:_MOST_PROBLEMS])
    return Payloads(pool, _left_out(load, meta, given))


def _left_out(load: ModelLoad, meta: ModelMeta, given: _Given) -> tuple[str, ...]:
    """The inputs of which neither `data`, where it names files, nor the samples have anything, in a sentence."""
    unknown = [tensor.name for tensor in meta.inputs if tensor.name not in given.items and tensor.name not in given.values]
    if load.data in ("", RANDOM) or not unknown:
        return ()
    return (f"{load.data} has nothing for {', '.join(unknown)} of {load.model}: random values were sent",)


def _too_large(plan: LoadPlan, meta: ModelMeta, fit: int) -> InputError:
    most = f"{MOST_POOL_BYTES >> 30} GiB of memory"
    if not fit:
        return problem(f"a single request takes more than {most}", "send fewer rows, or smaller ones", model=meta.name)
    return problem(f"{plan.pool} requests take more than {most}", f"prepare fewer with --pool {max(fit // 2, 1)}, or send smaller ones", model=meta.name)


def _least_bytes(meta: ModelMeta, tensor: TensorMeta, request: _Request, given: _Given) -> int:
    """What an input takes at least, computed before anything of that size is made."""
    if tensor.name in given.values:
        return array_bytes(given.values[tensor.name]) * request.rows
    sizes = request.sizes.get(tensor.name, meta.item_shape(tensor))
    rows = request.rows if meta.max_batch_size else 1
    size = 0 if -1 in sizes else math.prod(sizes) * rows * (tensor.dtype.itemsize or _TEXT_BYTES)
    # Items of files may be smaller than what was asked for, and one for many requests.
    return size if tensor.name not in given.items or size > MOST_POOL_BYTES else 0


def _check_rows(load: ModelLoad, meta: ModelMeta) -> None:
    rows = max(rows for rows, _ in load.batch_mix)
    if rows > max(meta.max_batch_size, 1):
        most = f"the model takes ({meta.max_batch_size})" if meta.max_batch_size else "a model takes that does not batch"
        raise problem(f"a batch of {rows} rows is more than {most}", "write a --batch-mix of smaller ones, or fewer `rows` of a Locust user", model=meta.name)


def _check_inputs(load: ModelLoad, meta: ModelMeta) -> None:
    unknown = sorted({name for sizes, _ in load.shape_mix for name in sizes} - meta.inputs_by_name.keys())
    if unknown:
        named, have = ", ".join(map(repr, unknown))[:200], ", ".join(meta.inputs_by_name)
        raise problem(f"sizes are given of what is no input: {named}", f"the model's inputs are {have}", model=meta.name)


def _requests(plan: LoadPlan, load: ModelLoad, meta: ModelMeta, order: random.Random) -> Iterator[_Request]:
    shapes = load.shape_mix or (({}, 1.0),)
    first = 0
    for _ in range(plan.pool):
        rows = order.choices([rows for rows, _ in load.batch_mix], [part for _, part in load.batch_mix])[0]
        chosen = order.choices([entry for entry, _ in shapes], [part for _, part in shapes])[0]
        yield _Request(rows, {**meta.warmup_shapes, **chosen}, first)
        first += rows


def _given(load: ModelLoad, meta: ModelMeta, order: random.Random) -> _Given:
    """The files and values of the plan. Raises InputError (TG423) with everything that is wrong with them."""
    found, problems = _Given(), []
    try:
        found.items.update(_data(load, meta))
    except SampleError as error:
        problems.append(_unfit(meta, str(error)))
    for name, value in {**meta.samples, **load.samples}.items():
        tensor = meta.inputs_by_name.get(name)
        if tensor is None or name in found.items or (isinstance(value, dict) and load.data == RANDOM):
            continue
        wanted = Wanted(name, tensor.dtype, meta.item_shape(tensor))
        try:
            if isinstance(value, dict):
                found.items[name] = items_of(Path(value["files"]), SampleFiles.model_validate(value), wanted)
            else:
                found.values[name] = as_array(value, wanted.dtype, wanted.item)
        except SampleError as error:
            problems.append(_unfit(meta, f"the sample of input '{name}' does not fit: {error}"))
    problems += _different_numbers(meta, found.items)
    if problems:
        raise InputError(problems)
    for number in sorted({len(items) for items in found.items.values()}):
        places = order.sample(range(number), number)
        found.items.update({name: [items[place] for place in places] for name, items in found.items.items() if len(items) == number})
    return found


def _data(load: ModelLoad, meta: ModelMeta) -> dict[str, Sequence[Item]]:
    """The items that `data` names, by input. Raises SampleError."""
    if load.data in ("", RANDOM):
        return {}
    path = Path(load.data)
    if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for names that are too long
        raise SampleError(f"there is no file or folder {path}")
    wanted = {tensor.name: Wanted(tensor.name, tensor.dtype, meta.item_shape(tensor)) for tensor in meta.inputs}
    files = {name: SampleFiles.model_validate({**_keys(load.samples.get(name)), "files": str(path)}) for name in wanted}
    if path.suffix == ".npz":
        arrays = load_archive(path)
        _check_names(path, arrays, meta, "arrays")
        return {name: array_items(array, path, wanted[name], name) for name, array in arrays.items()}
    if path.is_dir():
        inside = {each.stem if each.suffix == ".npy" and each.is_file() else each.name: each for each in sorted(path.iterdir()) if each.name[0] != "."}
        if inside.keys() & wanted.keys() or len(wanted) > 1:
            _check_names(path, inside, meta, "entries")
            return {name: _entry(each, files[name], wanted[name]) for name, each in inside.items()}
    if len(wanted) > 1:
        raise SampleError(
            f"{path} is one file, and the model has the inputs {', '.join(wanted)}: give an .npz file, or a folder with NAME.npy or NAME/ for each"
        )
    (name,) = wanted
    return {name: items_of(path, files[name], wanted[name])}


def _keys(sample: object) -> Mapping[str, object]:
    """How the spec has files of an input read; nothing where it has a plain value."""
    return sample if isinstance(sample, dict) else {}


def _entry(path: Path, how: SampleFiles, wanted: Wanted) -> Sequence[Item]:
    return array_items(load_array(path), path, wanted) if path.suffix == ".npy" and path.is_file() else items_of(path, how, wanted)


def _check_names(path: Path, found: Mapping[str, object], meta: ModelMeta, what: str) -> None:
    unknown = sorted(found.keys() - meta.inputs_by_name.keys())
    if unknown or not found:
        have = ", ".join(meta.inputs_by_name)
        wrong = f"has {what} that are no inputs: {', '.join(unknown[:_MOST_PROBLEMS])}" if unknown else f"has no {what}"
        raise SampleError(f"{path} {wrong}; name them as the model's inputs: {have}")


def _different_numbers(meta: ModelMeta, items: Mapping[str, Sequence[Item]]) -> list[Diagnostic]:
    """Items of several inputs belong together by their number; a single one goes with all."""
    numbers = {name: len(found) for name, found in items.items() if len(found) > 1}
    if len(set(numbers.values())) < 2:
        return []
    have = ", ".join(f"'{name}' has {number}" for name, number in numbers.items())
    return [_unfit(meta, f"the inputs have different numbers of items: {have}", "give every input as many, or a single one for all requests")]


def _unfit(meta: ModelMeta, message: str, hint: str = "correct the path, the files, or how the spec's `samples` has them read") -> Diagnostic:
    return Diagnostic("TG423", message, hint=hint, consequence="nothing was sent", model=meta.name)


class _Reader:
    """Items of files as arrays, each read once."""

    def __init__(self, meta: ModelMeta, given: _Given) -> None:
        self._meta, self._given = meta, given
        self._read: dict[tuple[str, int, tuple[int, ...]], Array] = {}
        self.problems: list[Diagnostic] = []
        self.used = 0

    def item(self, name: str, number: int, sizes: Sequence[int]) -> Array | None:
        """One item; None, and a problem, where it cannot be read."""
        items = self._given.items[name]
        key = (name, number % len(items), tuple(sizes))
        if key not in self._read:
            try:
                self._read[key] = items[key[1]].array(sizes)
            except SampleError as error:
                found = _unfit(self._meta, f"input '{name}': {error}")
                self.problems += [found] if found not in self.problems else []
                return None
            self.used += array_bytes(self._read[key])
        return self._read[key]


def _input(meta: ModelMeta, tensor: TensorMeta, request: _Request, given: _Given, read: _Reader, rng: np.random.Generator) -> Array:
    name, item, batched = tensor.name, meta.item_shape(tensor), meta.has_rows(tensor)
    if name in given.items:
        rows = [read.item(name, request.first + row, request.sizes.get(name, ())) for row in range(request.rows)]
        return _stacked(meta, name, [row for row in rows if row is not None], batched=batched, read=read)
    if name in given.values:
        return np.repeat(given.values[name][np.newaxis], request.rows, axis=0) if batched else given.values[name]
    shape = tuple(request.sizes.get(name, item))
    if len(shape) != len(item) or -1 in shape:
        example = "x".join("?" if size == -1 else str(size) for size in item)
        hint = f"give it with --shape-mix {name}={example}, as `shapes` of a Locust user, or in the spec's shapes"
        raise problem(f"the size of input '{name}' {list(item)} is not known", hint, model=meta.name)
    return random_values(tensor.dtype, (request.rows, *shape) if batched else shape, rng)


def _stacked(meta: ModelMeta, name: str, rows: Sequence[Array], *, batched: bool, read: _Reader) -> Array:
    """Rows as one array; an empty one where there are problems already."""
    if read.problems or not rows:
        return np.empty(0)
    shapes = sorted({row.shape for row in rows})
    if len(shapes) > 1:
        message = f"input '{name}': items of different sizes meet in a request of {len(rows)} rows: {', '.join(map(str, shapes[:3]))}"
        read.problems.append(_unfit(meta, message, f"give one size with --shape-mix {name}=..., or send one row (--batch-mix 1)"))
        return np.empty(0)
    return np.stack(rows) if batched else rows[0]
