"""Optional inputs of a spec on the embedded Triton."""

from __future__ import annotations

import models
import numpy as np
import onnx
import pytest

from tritongen.workflow.serving import serving

pytestmark = pytest.mark.server


def test_an_optional_input_may_be_left_out_or_given(tmp_path, options, ask):
    onnx.save(models.with_default(), tmp_path / "m.onnx")
    (tmp_path / "spec.yaml").write_text("version: 1\nmodels: [{name: m, source: m.onnx, optional_inputs: [s], shapes: {x: [2]}}]\n")
    x = np.array([1, 2], np.float32)
    with serving(tmp_path / "spec.yaml", options()) as served:
        np.testing.assert_array_equal(ask(served.server, "m", {"x": x})["y"], [3, 6])
        np.testing.assert_array_equal(ask(served.server, "m", {"x": x, "s": np.array([10], np.float32)})["y"], [10, 20])
