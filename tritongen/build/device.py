"""The GPUs that a build could use, asked of the driver's own libraries, and the choice of one."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tritongen.errors import EnvironmentProblem

_CUDA = "libcuda.so.1"
_NVML = "libnvidia-ml.so.1"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h
_NAME_BYTES = 256
_VERSION_BYTES = 96


@dataclass(frozen=True)
class Device:
    """A GPU.

    Attributes:
        name: as its driver says.
        compute_capability: such as `8.6`.
        driver: version of the driver; empty where it does not say.
        cuda: version of the driver's CUDA, likewise.
        number: among those that CUDA shows this process.
    """

    name: str
    compute_capability: str
    driver: str
    cuda: str = ""
    number: int = 0


def find_devices() -> tuple[Device, ...]:
    """The GPUs that CUDA shows this process, by their numbers; none where there is no driver, or no GPU. No context is made on them.

    `CUDA_VISIBLE_DEVICES` counts. Unless `CUDA_DEVICE_ORDER` says otherwise, the numbers are in the order of nvidia-smi's, as in the build script.
    """
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    cuda = _loaded(_CUDA)
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    if cuda is None or cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return ()
    # 13010 is 13.1 (cuDriverGetVersion).
    known = cuda.cuDriverGetVersion(ctypes.byref(version)) == 0
    spelt = f"{version.value // 1000}.{version.value % 1000 // 10}" if known else ""
    driver = _driver()
    found = (_device(cuda, number, driver, spelt) for number in range(count.value))
    return tuple(device for device in found if device is not None)


def use_device(device: Device) -> None:
    """Make this GPU the one that CUDA, and so TensorRT, takes in this thread. Raises EnvironmentProblem where it cannot be used."""
    cuda = _loaded(_CUDA)
    handle, context = ctypes.c_int(0), ctypes.c_void_p()
    # The context stays for the life of the process: what a failed build leaves is only freed later, and needs it.
    if cuda is None or not _all_work(
        lambda: cuda.cuInit(0),
        lambda: cuda.cuDeviceGet(ctypes.byref(handle), device.number),
        lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle),
        lambda: cuda.cuCtxSetCurrent(context),
    ):
        raise EnvironmentProblem(f"CUDA cannot use GPU {device.number}, {device.name}", hint="look at it with nvidia-smi: its memory may be full")


def _device(cuda: Any, number: int, driver: str, version: str) -> Device | None:
    handle, major, minor = (ctypes.c_int(0) for _ in range(3))
    name = ctypes.create_string_buffer(_NAME_BYTES)
    if not _all_work(
        lambda: cuda.cuDeviceGet(ctypes.byref(handle), number),
        lambda: cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, handle),
        lambda: cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, handle),
        lambda: cuda.cuDeviceGetName(name, _NAME_BYTES, handle),
    ):
        return None
    return Device(name.value.decode(errors="replace"), f"{major.value}.{minor.value}", driver, version, number)


def _all_work(*calls: Callable[[], int]) -> bool:
    """Make calls of the driver's in turn, up to the first that fails; whether none did."""
    return all(call() == 0 for call in calls)


def _loaded(name: str) -> Any:
    """A library of the driver's; None where it is not there."""
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def _driver() -> str:
    """The driver's version, such as 550.54.15."""
    nvml = _loaded(_NVML)
    if nvml is None or nvml.nvmlInit_v2() != 0:
        return ""
    version = ctypes.create_string_buffer(_VERSION_BYTES)
    status = nvml.nvmlSystemGetDriverVersion(version, _VERSION_BYTES)
    with contextlib.suppress(AttributeError):
        nvml.nvmlShutdown()
    return version.value.decode(errors="replace") if status == 0 else ""
