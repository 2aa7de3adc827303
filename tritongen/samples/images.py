"""Pictures as inputs, read by Pillow."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tritongen.dtypes import Dtype
from tritongen.errors import MissingExtra
from tritongen.samples.arrays import Array, SampleError, shown_shape
from tritongen.spec.samples import ImageSamples

if TYPE_CHECKING:
    from PIL.Image import Image

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})


class _Frame(NamedTuple):
    """What a picture must become: height and width (-1 for its own), channels, and where these are in an item of how many dimensions."""

    height: int
    width: int
    channels: int
    first: bool
    flat: bool


def read_image(path: Path, how: ImageSamples, dtype: Dtype, item: tuple[int, ...]) -> Array:
    """A picture as an item of this shape. A single side that may have any size follows the picture's own proportions.

    Raises SampleError where the file is no picture of 8 bits a channel, or the input cannot hold one; MissingExtra without Pillow.
    """
    frame = _frame(how, item)
    picture = _resized(_opened(path, frame.channels), how, frame)
    values = np.asarray(picture)
    if how.color == "bgr":
        values = values[:, :, ::-1]
    values = _scaled(values, how, dtype, frame.channels)
    if frame.flat:
        return values
    stacked = values if values.ndim == 3 else values[:, :, np.newaxis]
    return np.ascontiguousarray(stacked.transpose(2, 0, 1) if frame.first else stacked)


def _frame(how: ImageSamples, item: tuple[int, ...]) -> _Frame:
    """Raises SampleError for an item that is no picture."""
    wanted = {"gray": 1, "rgb": 3, "bgr": 3}.get(how.color)
    if len(item) == 2:
        if wanted == 3:
            raise SampleError(f"an input {shown_shape(item)} has no place for the channels of color: {how.color}; write color: gray")
        return _Frame(*item, channels=1, first=False, flat=True)
    if len(item) != 3:
        raise SampleError(f"a picture becomes [height, width], [channels, height, width] or [height, width, channels], and one item is {shown_shape(item)}")
    first = _is_channels_first(how, item)
    channels, (height, width) = (item[0], item[1:]) if first else (item[2], item[:2])
    channels = (wanted or 3) if channels == -1 else channels
    if channels not in (1, 3) or (wanted and channels != wanted):
        raise SampleError(f"an input {shown_shape(item)} has {channels} channels, and a picture has {wanted or '1 (gray) or 3'}; see image: color and layout")
    return _Frame(height, width, channels, first, flat=False)


def _is_channels_first(how: ImageSamples, item: tuple[int, ...]) -> bool:
    if how.layout != "auto":
        return how.layout == "chw"
    first, last = item[0] in (1, 3), item[2] in (1, 3)
    if first == last:
        raise SampleError(f"where the channels of an input {shown_shape(item)} are cannot be told; write image: {{layout: chw}} or {{layout: hwc}}")
    return first


def _opened(path: Path, channels: int) -> Image:
    try:
        from PIL import Image, ImageOps
    except ModuleNotFoundError as error:
        raise MissingExtra("media", f"reading the picture {path}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path) as picture:
                if picture.mode.startswith(("I", "F")):
                    raise SampleError("it has more than 8 bits a channel; save it as an array: numpy.save")
                return ImageOps.exif_transpose(picture).convert("L" if channels == 1 else "RGB")
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise SampleError("it has more pixels than a picture for a model should have") from error
    except (OSError, ValueError, SyntaxError) as error:  # Pillow says so of damaged files
        raise SampleError(f"it is no picture that can be read: {error}") from error


def _resized(picture: Image, how: ImageSamples, frame: _Frame) -> Image:
    from PIL import Image, ImageOps

    width, height = frame.width, frame.height
    if width == -1:
        width = picture.width if height == -1 else max(round(picture.width * height / picture.height), 1)
    if height == -1:
        height = picture.height if frame.width == -1 else max(round(picture.height * width / picture.width), 1)
    if picture.size == (width, height):
        return picture
    if how.resize == "crop":
        return ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR)
    if how.resize == "pad":
        return ImageOps.pad(picture, (width, height), Image.Resampling.BILINEAR)
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _scaled(values: Array, how: ImageSamples, dtype: Dtype, channels: int) -> Array:
    """Values of the picture, from 0 to 255, in the range of the input."""
    for name, given in (("mean", how.mean), ("std", how.std)):
        if given is not None and len(given) not in (1, channels):
            raise SampleError(f"image: {name} has {len(given)} values, and the input has {channels} channel{'s' * (channels > 1)}")
    low, high = how.range or ((0.0, 1.0) if dtype.is_float else (0.0, 255.0))
    if (low, high) == (0, 255) and how.mean is None and how.std is None:
        return values
    scaled = values.astype(np.float32) * np.float32((high - low) / 255) + np.float32(low)
    if how.mean is not None:
        scaled -= np.asarray(how.mean, np.float32)
    if how.std is not None:
        scaled /= np.asarray(how.std, np.float32)
    return scaled if dtype.is_float else np.rint(scaled)
