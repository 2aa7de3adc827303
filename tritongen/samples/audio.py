"""Recordings as inputs, read by soundfile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from tritongen.dtypes import Dtype
from tritongen.errors import MissingExtra
from tritongen.samples.arrays import Array, SampleError, shown_shape
from tritongen.spec.samples import AudioSamples

AUDIO_SUFFIXES = frozenset({".wav", ".flac", ".ogg"})
_STORED = {"INT16": "int16", "INT32": "int32", "FP32": "float32", "FP64": "float64", "FP16": "float32", "BF16": "float32"}
_MOST_SAMPLES = 1 << 26
"""Samples of a recording that becomes one input of any length: an hour at 16 kHz is less."""


def check_rates(paths: Sequence[Path], how: AudioSamples) -> None:
    """Raise SampleError for the first recording with another rate than the others, or than the model takes; MissingExtra without soundfile."""
    rate, of = how.sample_rate, "audio: sample_rate"
    for path in paths:
        sound = _library(path)
        try:
            own = int(sound.info(str(path)).samplerate)
        except (sound.LibsndfileError, OSError) as error:
            raise SampleError(f"{path}: it is no recording that can be read: {error}") from error
        if rate is not None and own != rate:
            raise SampleError(f"{path}: it has {own} samples a second, and {of} has {rate}; resample it, such as with ffmpeg -i IN -ar {rate} OUT")
        rate, of = (own, str(path)) if rate is None else (rate, of)


def read_audio(path: Path, how: AudioSamples, dtype: Dtype, item: tuple[int, ...]) -> Array:
    """A recording as an item of this shape: [samples], [channels, samples] or [samples, channels]; the last where the second dimension alone is 1 or 2.

    Raises SampleError where the file is no recording, or does not fit.
    """
    if dtype.wire not in _STORED:
        raise SampleError(f"a recording becomes {', '.join(_STORED)}, and the input is {dtype}")
    if len(item) not in (1, 2):
        raise SampleError(f"a recording becomes [samples] or [channels, samples], and one item is {shown_shape(item)}")
    last = len(item) == 2 and item[1] in (1, 2) and item[0] not in (1, 2)
    length = item[0] if last or len(item) == 1 else item[1]
    channels = 1 if len(item) == 1 else item[1] if last else item[0]
    values = _read(path, _STORED[dtype.wire], length)
    if how.channels == "mix":
        values = _mixed(values)
    if channels not in (-1, values.shape[1]):
        hint = "; write audio: {channels: mix}" if channels == 1 else ""
        raise SampleError(f"it has {values.shape[1]} channels, and the input takes {channels}{hint}")
    if length > len(values):
        values = np.concatenate([values, np.zeros((length - len(values), values.shape[1]), values.dtype)])
    return values[:, 0] if len(item) == 1 else values if last else np.ascontiguousarray(values.T)


def _read(path: Path, stored: str, length: int) -> Array:
    """Samples by channels; at most `length`, where that is known."""
    sound = _library(path)
    try:
        with sound.SoundFile(str(path)) as file:
            if length == -1 and file.frames > _MOST_SAMPLES:
                raise SampleError(f"it has {file.frames:,} samples, and one input of any length takes {_MOST_SAMPLES:,}; cut it")
            values: Array = np.asarray(file.read(length, dtype=stored, always_2d=True))
    except (sound.LibsndfileError, OSError) as error:
        raise SampleError(f"it is no recording that can be read: {error}") from error
    if not len(values):
        raise SampleError("it holds no sound")
    return values


def _mixed(values: Array) -> Array:
    mean: Array = np.mean(values, axis=1, keepdims=True)
    return np.asarray(mean if values.dtype.kind == "f" else np.rint(mean), values.dtype)


def _library(path: Path) -> ModuleType:
    try:
        import soundfile
    except (ModuleNotFoundError, OSError) as error:  # OSError: libsndfile is not there
        raise MissingExtra("media", f"reading the recording {path}") from error
    return soundfile  # type: ignore[no-any-return]
