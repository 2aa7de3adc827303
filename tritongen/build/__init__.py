"""TensorRT plans built in this process, by recipe. Knows no spec, no repository and no terminal: a plan is bytes here."""

from tritongen.build.builder import Builder, Built, Definition, Job, TensorRTBuilder
from tritongen.build.callbacks import Progress, Silent
from tritongen.build.libraries import KINDS, Library, load_library

__all__ = ["KINDS", "Builder", "Built", "Definition", "Job", "Library", "Progress", "Silent", "TensorRTBuilder", "load_library"]
