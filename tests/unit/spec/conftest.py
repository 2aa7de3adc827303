"""Writing a spec and reading what is wrong with it."""

import textwrap

import pytest

from tritongen.errors import SpecError
from tritongen.spec import load_spec


class Folder:
    """A folder for a spec. `load` gives the spec, `findings` what is wrong with it."""

    def __init__(self, path):
        self.path = path
        for name in MODEL_FILES:
            (path / name).write_bytes(b"x")

    def write(self, text):
        file = self.path / "spec.yaml"
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    def load(self, text):
        return load_spec(self.write(text))

    def findings(self, text):
        with pytest.raises(SpecError) as caught:
            load_spec(self.write(text))
        return caught.value.diagnostics

    def finding(self, text):
        (only,) = self.findings(text)
        return only

    def model(self, text):
        """The first model of a spec of which `text` is the model's keys in flow style, without name and source."""
        return self.load(ONE_MODEL.format(text)).spec.models[0]

    def model_finding(self, text):
        return self.finding(ONE_MODEL.format(text))


MODEL_FILES = ("m.onnx", "a.onnx", "b.onnx", "c.onnx")
"""Files that specs may name as sources; what they hold is not the spec's affair."""
ONE_MODEL = "version: 1\nmodels:\n  - {{name: m, source: m.onnx, {}}}\n"


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)
