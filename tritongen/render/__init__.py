"""Spec and signature in, the files of a model repository out, in memory."""

from tritongen.render.compile import Compiled, compile_model
from tritongen.render.entry import ModelFiles, build_entry, hash_model
from tritongen.render.findings import Findings

__all__ = ["Compiled", "Findings", "ModelFiles", "build_entry", "compile_model", "hash_model"]
