"""Files as inputs: which there are, and what each becomes. Nothing is decoded before it is asked for, so that a folder may hold more than fits into memory."""

from __future__ import annotations

import functools
import itertools
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tritongen.dtypes import Dtype
from tritongen.samples.arrays import Array, SampleError, as_array, shown_shape
from tritongen.samples.audio import AUDIO_SUFFIXES, check_rates, read_audio
from tritongen.samples.images import IMAGE_SUFFIXES, read_image
from tritongen.spec.samples import SampleFiles

MOST_FILES = 100_000
MOST_TEXT_BYTES = 256 << 20
"""Texts are held in memory as a whole."""
_MOST_NAMED = 5

Sizes = Sequence[int]


@dataclass(frozen=True)
class Wanted:
    """An input: its name, its dtype, and the shape of one item: -1 for any size, None where nothing is known of it."""

    name: str
    dtype: Dtype
    item: tuple[int, ...] | None


@dataclass(frozen=True)
class Item:
    """One value of an input that lies in a file. `place` says where in the file, where it holds several."""

    path: Path
    make: Callable[[Sizes], Array]
    place: str = ""

    def array(self, sizes: Sizes) -> Array:
        """The value, read now, in `sizes` as far as these are known (-1 where not). Raises SampleError, with the file's path."""
        try:
            return self.make(sizes)
        except SampleError as error:
            raise SampleError(f"{self.path}{self.place}: {error}") from error


def items_of(path: Path, how: SampleFiles, wanted: Wanted) -> tuple[Item, ...]:
    """The items of a folder or a file, in the order of their names; hidden files are left out.

    Raises SampleError where there is none, or a file of which no item can be made, and MissingExtra where a kind of file needs a library.
    """
    paths = _paths(path)
    audio = [] if wanted.dtype.itemsize is None else [each for each in paths if each.suffix.lower() in AUDIO_SUFFIXES]
    check_rates(audio, how.audio)
    found: list[Item] = []
    wrong: list[Path] = []
    for each in paths:
        items = _items(each, how, wanted)
        found += items or ()
        wrong += [each] if items is None else []
    if wrong:
        named = ", ".join(str(each) for each in wrong[:_MOST_NAMED]) + (f" and {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else "")
        raise SampleError(f"no {wanted.dtype} can be made of {named}; files are pictures, recordings, .npy and .npz, and for inputs of type BYTES any")
    if not found:
        raise SampleError(f"{path} holds no item")
    return tuple(found)


def array_items(array: Array, path: Path, wanted: Wanted, member: str = "") -> tuple[Item, ...]:
    """The items of one array: a row for each where it has a dimension more than an item, else itself. Raises SampleError where it is neither, or has no row."""
    place = f": {member}" if member else ""
    if wanted.item is None or array.ndim == len(wanted.item):
        return (Item(path, functools.partial(_fit, array, wanted), place),)
    if array.ndim != len(wanted.item) + 1 or any(want not in (-1, got) for want, got in zip(wanted.item, array.shape[1:], strict=True)):
        raise SampleError(f"{path}{place}: expected one item {shown_shape(wanted.item)} or rows of them, got an array {shown_shape(array.shape)}")
    if not len(array):
        raise SampleError(f"{path}{place} holds no item: it is an array of no rows")
    return tuple(Item(path, functools.partial(_fit, row, wanted), f"{place}: row {number}") for number, row in enumerate(array))


def load_array(path: Path) -> Array:
    """A .npy file, without holding it in memory. Raises SampleError."""
    try:
        return np.lib.format.open_memmap(path, mode="r")  # type: ignore[no-untyped-call, no-any-return]
    except (OSError, ValueError, EOFError) as error:
        raise SampleError(f"{path} cannot be read as a .npy file: {error}") from error


def load_archive(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name. Raises SampleError."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise SampleError(f"{path} cannot be read as an .npz file: {error}") from error


def _paths(path: Path) -> list[Path]:
    """The files below a folder, or the file itself."""
    try:
        if path.is_file():
            return [path]
        if not path.is_dir():
            raise SampleError(f"there is no file or folder {path}")
        files = (each for each in path.rglob("*") if each.is_file() and not any(part.startswith(".") for part in each.relative_to(path).parts))
        found = sorted(itertools.islice(files, MOST_FILES + 1))
    except OSError as error:
        raise SampleError(f"{path} cannot be read: {error.strerror}") from error
    if len(found) > MOST_FILES:
        raise SampleError(f"{path} holds more than {MOST_FILES:,} files")
    return found


def _items(path: Path, how: SampleFiles, wanted: Wanted) -> Sequence[Item] | None:
    """The items of one file; None where none can be made of it."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return array_items(load_array(path), path, wanted)
    if suffix == ".npz":
        arrays = load_archive(path)
        if wanted.name not in arrays:
            raise SampleError(f"{path} has no array '{wanted.name}'; it has {', '.join(arrays) or 'none'}")
        return array_items(arrays[wanted.name], path, wanted, wanted.name)
    if wanted.dtype.itemsize is None:
        return list(_texts(path, how, wanted)) if suffix == ".txt" else [Item(path, lambda _: _fit(_bytes(path), wanted))]
    if suffix in IMAGE_SUFFIXES:
        return [Item(path, lambda sizes: _fit(read_image(path, how.image, wanted.dtype, _merged(wanted, sizes)), wanted))]
    if suffix in AUDIO_SUFFIXES:
        return [Item(path, lambda sizes: _fit(read_audio(path, how.audio, wanted.dtype, _merged(wanted, sizes)), wanted))]
    return None


def _merged(wanted: Wanted, sizes: Sizes) -> tuple[int, ...]:
    """The shape of an item, with sizes where the input has any."""
    if wanted.item is None:
        raise SampleError(f"nothing is known of the shape of '{wanted.name}', so that no picture or recording can be made to fit; give an array")
    if len(sizes) != len(wanted.item):
        return wanted.item
    return tuple(size if own == -1 else own for own, size in zip(wanted.item, sizes, strict=True))


def _fit(value: object, wanted: Wanted, sizes: Sizes = ()) -> Array:
    """A value as the input takes it; what is no number of the dtype, or has another shape, is refused."""
    array = np.asarray(value)
    return as_array(array.reshape(()) if wanted.dtype.itemsize is None and array.size == 1 else array, wanted.dtype, wanted.item)


def _bytes(path: Path) -> Array:
    try:
        return _one(path.read_bytes())
    except OSError as error:
        raise SampleError(str(error.strerror)) from error


def _one(content: bytes) -> Array:
    """Bytes as an array of one element: numpy's own texts lose zeros at their end."""
    array = np.empty((), dtype=object)
    array[()] = content
    return array


def _texts(path: Path, how: SampleFiles, wanted: Wanted) -> Iterator[Item]:
    try:
        if path.stat().st_size > MOST_TEXT_BYTES:
            raise SampleError(f"{path} is larger than {MOST_TEXT_BYTES >> 20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SampleError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SampleError(f"{path} is no text in UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    if how.text.per == "file":
        yield Item(path, functools.partial(_fit, _one(text.encode()), wanted))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Item(path, functools.partial(_fit, _one(line.encode()), wanted), f":{number}")
