"""The private environment, made for real: pip installs some 200 MB."""

from __future__ import annotations

import numpy as np
import pytest

from tests.server import models
from tritongen.server import environment, start
from tritongen.server.interpreter import probe
from tritongen.server.setup import setup_environment

pytestmark = [pytest.mark.server, pytest.mark.system]


def test_a_private_environment_is_made_once_and_serves(tmp_path, monkeypatch, options, ask):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    said: list[str] = []
    folder = setup_environment(say=said.append)
    assert folder == environment.private_environment()
    assert environment.private_is_complete()
    private = probe(environment.private_python())
    assert environment.shortcomings(private) == []
    models.put(tmp_path / "repository", "linear", models.linear(), models.LINEAR)
    with start(tmp_path / "repository", options(), environment=environment.of(private)) as server:
        assert ask(server, "linear", {"x": np.ones((1, 64), np.float32)})["y"].shape == (1, 16)
    said.clear()
    assert setup_environment(say=said.append) == folder
    assert said == [f"{folder} is there already, and complete"]
