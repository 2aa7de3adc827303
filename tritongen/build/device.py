"""The GPU that a build would use, asked of the driver's own libraries: the first that CUDA shows this process. No context is made on it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass

_CUDA = "libcuda.so.1"
_NVML = "libnvidia-ml.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h
_NAME_BYTES = 256
_VERSION_BYTES = 96


@dataclass(frozen=True)
class Device:
    """A GPU: its name, its compute capability (`8.6`), and the versions of its driver and of the driver's CUDA (empty where the driver does not say)."""

    name: str
    compute_capability: str
    driver: str
    cuda: str = ""


def find_device() -> Device | None:
    """The GPU that CUDA takes when nothing is said; None where there is no driver, or no GPU. `CUDA_VISIBLE_DEVICES` counts."""
    try:
        cuda = ctypes.CDLL(_CUDA)
    except OSError:
        return None
    device, major, minor, version = (ctypes.c_int(0) for _ in range(4))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    calls: tuple[Callable[[], int], ...] = (
        lambda: cuda.cuInit(0),
        lambda: cuda.cuDeviceGet(ctypes.byref(device), 0),
        lambda: cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device),
        lambda: cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device),
        lambda: cuda.cuDeviceGetName(name, _NAME_BYTES, device),
    )
    if any(call() != 0 for call in calls):
        return None
    # 13010 is 13.1 (cuDriverGetVersion).
    known = cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
    spelt = f"{version.value // 1000}.{version.value % 1000 // 10}" if known else ""
    return Device(name.value.decode(errors="replace"), f"{major.value}.{minor.value}", _driver(), spelt)


def _driver() -> str:
    """The driver's version, such as 550.54.15."""
    try:
        nvml = ctypes.CDLL(_NVML)
    except OSError:
        return ""
    if nvml.nvmlInit_v2() != 0:
        return ""
    version = ctypes.create_string_buffer(_VERSION_BYTES)
    status = nvml.nvmlSystemGetDriverVersion(version, _VERSION_BYTES)
    with contextlib.suppress(AttributeError):
        nvml.nvmlShutdown()
    return version.value.decode(errors="replace") if status == 0 else ""
