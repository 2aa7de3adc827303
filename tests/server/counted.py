"""The counts of a model after requests. Triton sends an answer before it counts it, so a test that reads at once may read the count before."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

_PATIENCE_S = 20


def statistics(http_url: str, model: str, *, inferences: int = 0) -> dict[str, Any]:
    """The statistics of `model` as soon as they hold `inferences` inferences or more; after 20 s as they are, for the test to judge."""
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        with urllib.request.urlopen(f"{http_url}/v2/models/{model}/stats") as answer:
            (found,) = json.load(answer)["model_stats"]
        if int(found.get("inference_count", 0)) >= inferences or time.monotonic() > give_up:
            return found
        time.sleep(0.01)
