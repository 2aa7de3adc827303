"""The spec: what the user writes, as frozen values that every later stage reads.

`models` are the values, `load` makes them out of a file with positions, `paths` finds the files they name, `schema` describes them to editors.
"""

from tritongen.spec.load import LoadedSpec, load_spec, read_spec
from tritongen.spec.models import ModelSpec, Spec
from tritongen.spec.paths import resolve_source
from tritongen.spec.schema import spec_schema

__all__ = ["LoadedSpec", "ModelSpec", "Spec", "load_spec", "read_spec", "resolve_source", "spec_schema"]
