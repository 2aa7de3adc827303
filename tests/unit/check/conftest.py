"""Small repositories."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from check_models import CONFIG, MLP

sys.path.insert(0, str(Path(__file__).parents[2] / "rules"))

from building import build_onnx


@pytest.fixture
def add_model(tmp_path: Path) -> Callable[..., Path]:
    """Put a model into a repository; its config is one that is right unless another is given."""

    def add(name: str = "m", config: str | bytes | None = None, *, repository: str = "repository", onnx: str | None = MLP) -> Path:
        folder = tmp_path / repository / name
        (folder / "1").mkdir(parents=True)
        if onnx is not None:
            (folder / "1/model.onnx").write_bytes(build_onnx(onnx))
        text = CONFIG.format(name=name) if config is None else config
        (folder / "config.pbtxt").write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return add
