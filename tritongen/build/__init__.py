"""TensorRT plans built in this process, by recipe. Knows no spec and no terminal; a plan is bytes until who asked for it writes it."""

from tritongen.build.builder import Builder, Built, Definition, Job, TensorRTBuilder
from tritongen.build.callbacks import Progress, Silent
from tritongen.build.device import Device, find_devices
from tritongen.build.libraries import Library, load_library
from tritongen.build.outcome import Building, Outcome, State
from tritongen.build.survey import Wanted, survey

__all__ = [
    "Builder",
    "Building",
    "Built",
    "Definition",
    "Device",
    "Job",
    "Library",
    "Outcome",
    "Progress",
    "Silent",
    "State",
    "TensorRTBuilder",
    "Wanted",
    "find_devices",
    "load_library",
    "survey",
]
