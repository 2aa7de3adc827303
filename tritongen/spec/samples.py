"""Inputs that lie in files: which ones, and how a picture, a recording or a text becomes what the model takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, ValidationInfo, WithJsonSchema, WrapValidator, field_validator

from tritongen.spec.strict import Strict, setting
from tritongen.spec.values import PathText, PositiveInt, SampleValue, check_sample, problem

Number = Annotated[float, Field(strict=True, allow_inf_nan=False), WithJsonSchema({"type": "number"})]
_MADE = "no field; requests are made by it"

Ends = Annotated[tuple[Number, ...], WithJsonSchema({"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}})]
PerChannel = Annotated[tuple[Number, ...], Field(min_length=1)]


class ImageSamples(Strict, json_schema_extra={"examples": [{"resize": "crop", "range": [0, 1], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}]}):
    """How a picture becomes an input: (value - mean) / std, of values from 0 to 255 that were brought to `range`."""

    layout: Literal["auto", "chw", "hwc"] = setting(
        "Where the channels are. auto: where the input has 1 or 3 of them; an input of two dimensions has none.",
        default="auto",
        sets=_MADE,
        why="for an input that could be read both ways, and for channels of variable number",
    )
    color: Literal["auto", "rgb", "bgr", "gray"] = setting(
        "Which channels, in which order. auto: gray for one channel, else rgb.",
        default="auto",
        sets=_MADE,
        why="bgr for models that were trained on what OpenCV reads",
    )
    resize: Literal["stretch", "crop", "pad"] = setting(
        "How a picture of another shape fills the input: stretch it, crop what stands over, or pad with black.",
        default="stretch",
        sets=_MADE,
        why="to do what the model was trained with",
    )
    range: Ends | None = setting(
        "What 0 and 255 become. Default: [0, 1] for inputs of floats, [0, 255] for those of whole numbers.",
        sets=_MADE,
        why="[-1, 1] for many networks, [0, 255] where the model normalises by itself",
    )
    mean: PerChannel | None = setting(
        "Subtracted then, for each channel or one number for all, in a list. Default: nothing.",
        sets=_MADE,
        why="for models that were trained so",
    )
    std: PerChannel | None = setting(
        "Divided by then, for each channel or one number for all, in a list. Default: nothing.",
        sets=_MADE,
        why="for models that were trained so",
    )

    @field_validator("range")
    @classmethod
    def _some_range(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and len(value) != 2:
            raise problem(f"expected the two numbers that 0 and 255 become, got {len(value)}", hint="write range: [0, 1], or leave it out")
        if value is not None and value[0] == value[1]:
            raise problem("both ends of the range are the same, so that every picture is", hint="write range: [0, 1], or leave it out")
        return value

    @field_validator("std")
    @classmethod
    def _no_zero(cls, value: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if value is not None and 0 in value:
            raise problem("it is 0, and values are divided by it", hint="write the standard deviation of each channel, or leave it out")
        return value


class AudioSamples(Strict, json_schema_extra={"examples": [{"sample_rate": 16000}]}):
    """How a recording becomes an input: samples from -1 to 1 for floats, stored ones for whole numbers; cut, or filled with silence, to a fixed length."""

    sample_rate: PositiveInt | None = setting(
        "Samples a second that the model takes: a file with another rate is refused. Default: any, the same for all files.",
        sets=_MADE,
        why="a recording of another rate sounds like another one to the model, and nobody is told",
    )
    channels: Literal["same", "mix"] = setting(
        "same: a file must have as many channels as the input takes. mix: they are averaged to one.",
        default="same",
        sets=_MADE,
        why="mix for stereo recordings and models that take one channel",
    )


class TextSamples(Strict, json_schema_extra={"examples": [{"per": "file"}]}):
    """How a text file becomes inputs of type BYTES, in UTF-8."""

    per: Literal["line", "file"] = setting(
        "line: each line that is not empty is an item. file: each file is one.",
        default="line",
        sets=_MADE,
        why="file for whole documents",
    )


class SampleFiles(Strict, json_schema_extra={"examples": [{"files": "images", "image": {"range": [-1, 1]}}]}):
    """Values of an input that lie in files. The first of them, by name, is the sample for warmup; load tests send them all, in a seeded order."""

    files: PathText = setting(
        "A folder, or one file, inside the spec's folder: pictures (.png, .jpg, .jpeg, .bmp, .webp), recordings (.wav, .flac, .ogg), texts (.txt), .npy files"
        " with one item or a row for each, or an .npz file with an array of the input's name. An input of type BYTES gets other files than texts as they are.",
        default=...,
        sets="model_warmup.inputs.input_data_file, by the first of them",
        why="to measure with what a service will really get",
    )
    image: ImageSamples = setting(
        "How pictures become inputs.",
        default_factory=ImageSamples,
        sets=_MADE,
        why="to prepare them as the model was trained",
    )
    audio: AudioSamples = setting("How recordings become inputs.", default_factory=AudioSamples, sets=_MADE, why="to refuse what the model cannot hear")
    text: TextSamples = setting("How texts become inputs.", default_factory=TextSamples, sets=_MADE, why="for documents, which are more than a line")


SampleOrFiles: TypeAlias = SampleValue | SampleFiles


def _check(value: object, _handler: Any, _info: ValidationInfo) -> object:
    """A value, the path of a .npy file, or files."""
    if isinstance(value, SampleFiles):
        return value
    return SampleFiles.model_validate(value) if isinstance(value, Mapping) else check_sample(value)


Sample = Annotated[SampleOrFiles, WrapValidator(_check)]
"""Its JSON Schema is recursive, which pydantic cannot say inline: `schema` puts it in."""
