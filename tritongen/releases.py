"""NVIDIA's Triton container releases: which Triton, ONNX Runtime, TensorRT and CUDA an image carries.

Sources: the server repository's build settings and compatibility page for Triton, ONNX Runtime, CUDA and Python; TensorRT as NVIDIA or a project that names the
image states it. `None` means that no source says: tritongen then says so instead of guessing.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One `nvcr.io/nvidia/tritonserver:<name>-py3` image.

    Attributes:
        name: the tag, `YY.MM`.
        triton: version of the server core.
        onnxruntime: version of ONNX Runtime in the onnxruntime backend.
        tensorrt: version of TensorRT in the `-py3` variant (the `-trtllm` variant carries an older one).
        cuda: version of CUDA.
        python: minor version that the Python backend's bundled stub is built for.
    """

    name: str
    triton: str | None
    onnxruntime: str | None
    tensorrt: str | None
    cuda: str | None
    python: str | None

    @property
    def trtllm_tensorrt(self) -> str | None:
        """TensorRT in the `-trtllm-python-py3` image, or None where no source says."""
        return next((tensorrt for first, last, tensorrt in _TRTLLM_TENSORRT if order_of(first) <= self.order <= order_of(last)), None)

    @property
    def order(self) -> tuple[int, int]:
        """`(year, month)`, for comparing releases by age."""
        return order_of(self.name)

    @property
    def least_tensorrt(self) -> str:
        """The TensorRT in the `-py3` image, or the least that it can be: that of the newest release before this one whose version is known.

        No release has an older TensorRT than the one before it.
        """
        return next(release.tensorrt for release in reversed(RELEASES) if release.order <= self.order and release.tensorrt)

    @property
    def most_tensorrt(self) -> str | None:
        """The TensorRT in the `-py3` image, or the most that it can be: that of the next release whose version is known; None where there is none."""
        return next((release.tensorrt for release in RELEASES if release.order >= self.order and release.tensorrt), None)

    @property
    def least_tensorrt_major(self) -> int:
        """The major version of `least_tensorrt`."""
        return int(self.least_tensorrt.split(".")[0])

    @property
    def least_compute_capability(self) -> tuple[int, int]:
        """The least of a GPU that the image serves: 6.0, and 7.5 from TensorRT 10.5 on, which has no Volta any more (its release notes)."""
        return (7, 5) if _numbers(self.least_tensorrt) >= (10, 5) else (6, 0)

    @property
    def knows_blackwell(self) -> bool:
        """Whether its TensorRT knows GPUs of compute capability 10.0 and above, as 10.8 and later do (its release notes); one that is not known may."""
        return self.tensorrt is None or _numbers(self.tensorrt) >= (10, 8)

    @property
    def knows_same_compute_capability(self) -> bool:
        """Whether its TensorRT builds plans for all GPUs of one compute capability, as 10.9 and later do (its release notes)."""
        return _numbers(self.least_tensorrt) >= (10, 9)

    @property
    def tensorrt_text(self) -> str:
        """TensorRT's version in words: `11.2.1`, or `11.2.1 or newer` where it is not known exactly."""
        return self.tensorrt or f"{self.least_tensorrt} or newer"


def same_version(first: str, second: str) -> bool:
    """Whether two versions are the same as far as both are stated: 10.6.0 and 10.6.0.26 are."""
    return all(one == other for one, other in zip(first.split("."), second.split("."), strict=False))


def version_numbers(version: str) -> tuple[int, ...]:
    """A version for comparing by age; what is not stated counts as nothing."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _numbers(version: str) -> tuple[int, int]:
    """Major and minor of a version."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def order_of(name: str) -> tuple[int, int]:
    """`(year, month)` of a tag `YY.MM`, for comparing releases by age."""
    year, month = name.split(".")
    return int(year), int(month)


RELEASES: tuple[Release, ...] = (
    Release("24.01", "2.42.0", "1.16.3", "8.6.1.6", "12.3.2", "3.10"),
    Release("24.02", "2.43.0", "1.16.3", "8.6.3", "12.3.2", "3.10"),
    Release("24.03", "2.44.0", "1.17.2", "8.6.3", "12.4.0.41", "3.10"),
    Release("24.04", "2.45.0", "1.17.3", "8.6.3", "12.4.1", "3.10"),
    Release("24.05", "2.46.0", "1.18.0", "10.0.1.6", "12.4.1", "3.10"),
    Release("24.06", "2.47.0", "1.18.0", "10.1.0.27", "12.5.0.23", "3.10"),
    Release("24.07", "2.48.0", "1.18.1", "10.2.0.19", "12.5.1", "3.10"),
    Release("24.08", "2.49.0", "1.18.1", "10.3.0.26", "12.6.0.022", "3.10"),
    Release("24.09", "2.50.0", "1.19.2", "10.4.0.26", "12.6.1.006", "3.10"),
    Release("24.10", "2.51.0", "1.19.2", "10.5.0.18", "12.6.2.004", "3.10"),
    Release("24.11", "2.52.0", "1.19.2", "10.6.0.26", "12.6.3.001", "3.12"),
    Release("24.12", "2.53.0", "1.20.1", "10.7.0.23", "12.6.3.004", "3.12"),
    Release("25.01", "2.54.0", "1.20.1", "10.8.0.43", "12.8.0.038", "3.12"),
    Release("25.02", "2.55.0", "1.20.1", "10.8.0.43", "12.8.0.038", "3.12"),
    Release("25.03", "2.56.0", "1.21.0", "10.9.0.34", "12.8.1.012", "3.12"),
    Release("25.04", "2.57.0", "1.21.0", "10.9.0.34", "12.9.0.036", "3.12"),
    Release("25.05", "2.58.0", "1.22.0", "10.10.0.31", "12.9.0.043", "3.12"),
    Release("25.06", "2.59.0", "1.22.0", "10.11.0.33", "12.9.1.010", "3.12"),
    Release("25.07", "2.59.1", "1.22.0", None, None, "3.12"),
    Release("25.08", "2.60.0", "1.23.0", "10.13.2.6", "13.0.1.012", "3.12"),
    Release("25.09", "2.61.0", "1.23.0", "10.13.3.9", "13.0.1.012", "3.12"),
    Release("25.10", "2.62.0", "1.23.1", "10.13.3.9", "13.0.2.006", "3.12"),
    Release("25.11", "2.63.0", "1.23.2", "10.14.1.48", "13.0.2.006", "3.12"),
    Release("25.12", "2.64.0", "1.23.2", "10.14.1.48", "13.1.0.036", "3.12"),
    Release("26.01", "2.65.0", "1.23.2", None, "13.1.1.006", "3.12"),
    Release("26.02", "2.66.0", "1.24.1", "10.15.1", "13.1.1.006", "3.12"),
    Release("26.03", "2.67.0", "1.24.2", "10.16", "13.2.0.046", "3.12"),
    Release("26.04", "2.68.0", "1.24.4", "10.16.1", "13.2.1.009", "3.12"),
    Release("26.05", "2.69.0", "1.24.4", None, "13.2.1.009", "3.12"),
    Release("26.06", "2.70.0", "1.24.4", "11.0", "13.3.0.035", "3.12"),
    Release("26.07", "2.71.0", "1.27.0", "11.1.0.106", "13.3.1", "3.12"),
    Release("26.08", "2.72.0", "1.28.0", "11.2.1", "13.4.1.012", "3.12"),
    Release("26.09", "2.73.0", None, None, "13.4.1", "3.12"),
    Release("26.10", None, None, None, "13.4.3.001", None),
)


_TRTLLM_TENSORRT = (
    ("24.08", "24.08", "10.3.0"),
    ("24.09", "24.10", "10.4.0"),
    ("24.11", "24.11", "10.6.0"),
    ("24.12", "24.12", "10.7.0"),
    ("25.01", "25.02", "10.8.0.43"),
    ("25.03", "25.05", "10.9.0.34"),
    ("25.06", "25.07", "10.10.0.31"),
    ("25.08", "25.10", "10.11.0.33"),
    ("25.11", "26.02", "10.13.3.9"),
    ("26.03", "26.07", "10.14.1.48"),
)
"""First release, last release, TensorRT of their `-trtllm-python-py3` images. Source: the server's docs/introduction/compatibility.md."""

_BY_NAME = {release.name: release for release in RELEASES}

DEFAULT_RELEASE = next(release for release in reversed(RELEASES) if release.triton and release.onnxruntime and release.tensorrt)
"""What a spec without `triton.release` is written for: the newest release of which all that matters here is known."""


def find_release(name: str) -> Release | None:
    """The release with this tag, or None for one that is not in the table (older, newer, or never published)."""
    return _BY_NAME.get(name)


def tensorrt_major_of(name: str) -> int:
    """The major version of the TensorRT in the release with this tag; for one that is not in the table that of the nearest one."""
    return (find_release(name) or _nearest(name)).least_tensorrt_major


def tensorrt_text_of(name: str) -> str:
    """The TensorRT in the release with this tag in words, such as `11.2.1`; of one that is not in the table what its place beside that says."""
    release = find_release(name)
    if release is not None:
        return release.tensorrt_text
    nearest = _nearest(name)
    return f"{nearest.least_tensorrt} or {'newer' if nearest is RELEASES[-1] else 'older'}"


def _nearest(name: str) -> Release:
    return RELEASES[-1] if order_of(name) > RELEASES[-1].order else RELEASES[0]
