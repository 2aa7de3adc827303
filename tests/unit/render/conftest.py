"""The place that the script which builds plans is run in, under each shell that it must run under; and the services of a deployment."""

import sys
from pathlib import Path
from typing import Any

import compose
import pytest
from deployments import loaded, texts

from tritongen.render.deploy import CPU_FILE, LEAD

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

from running import Site, shells


@pytest.fixture(params=[pytest.param(words, id=name, marks=[pytest.mark.system] * (name != "dash")) for name, words in shells()])
def site(request, tmp_path):
    return Site(tmp_path, request.param)


@pytest.fixture
def services(tmp_path):
    """The services of a spec, on GPUs or without one."""

    def of(text: str, *, cpu: bool = False) -> dict[str, Any]:
        return compose.read(texts(loaded(tmp_path, text))[CPU_FILE if cpu else LEAD])["services"]

    return of
