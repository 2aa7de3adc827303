"""How many GPUs a server on this machine would see, asked of the driver's own library; nothing of CUDA is loaded into this process."""

from __future__ import annotations

import contextlib
import ctypes
import os

_NVML = "libnvidia-ml.so.1"


def count() -> int:
    """Number of NVIDIA GPUs that a process started here would see; 0 where there is no driver. `CUDA_VISIBLE_DEVICES` counts."""
    try:
        library = ctypes.CDLL(_NVML)
    except OSError:
        return 0
    if library.nvmlInit_v2() != 0:
        return 0
    found = ctypes.c_uint(0)
    status = library.nvmlDeviceGetCount_v2(ctypes.byref(found))
    with contextlib.suppress(AttributeError):
        library.nvmlShutdown()
    return visible(found.value, os.environ.get("CUDA_VISIBLE_DEVICES")) if status == 0 else 0


def visible(devices: int, setting: str | None) -> int:
    """How many of `devices` GPUs are left by a value of `CUDA_VISIBLE_DEVICES`. CUDA stops reading the list at the first number that does not exist."""
    if setting is None:
        return devices
    kept = 0
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        if entry.lstrip("-").isdigit() and not 0 <= int(entry) < devices:
            break
        kept += 1
    return min(kept, devices)
