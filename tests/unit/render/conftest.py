"""The place that the script which builds plans is run in, under each shell that it must run under."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "trtexec"))

from running import Site, shells


@pytest.fixture(params=[pytest.param(words, id=name, marks=[pytest.mark.system] * (name != "dash")) for name, words in shells()])
def site(request, tmp_path):
    return Site(tmp_path, request.param)
