"""What a scenario sends to one model: the model's own keys before the scenario's, and these before those of the spec's model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tritongen.spec.scenarios import ModelTraffic, Scenario
from tritongen.spec.shapes import ShapeRange
from tritongen.spec.traffic import ShapeMix, combined


class Asked(Protocol):
    """What has to be known of a model that is sent to."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def known_shapes(self) -> Mapping[str, ShapeRange]:
        """Sizes by input, as far as the spec says them."""
        ...


@dataclass(frozen=True)
class Sending:
    """The requests to one model.

    Attributes:
        part: its part of all requests, in proportion to the other models'.
        batch_mix: rows of a request, with their parts of 1.
        shape_mix: sizes by input, one entry for each combination, with its part of 1; empty where no size is known.
        data: where inputs come from, as it was written; empty where nothing is said.
    """

    part: float
    batch_mix: tuple[tuple[int, float], ...]
    shape_mix: ShapeMix
    data: str


def sending(scenario: Scenario, model: Asked) -> Sending:
    """What a scenario sends to a model of the spec. Raises TrafficError where its mixes make too many combinations."""
    own = (scenario.models or {}).get(model.name) or ModelTraffic()
    usual = {tensor: ((tuple(sizes.opt), 1.0),) for tensor, sizes in model.known_shapes.items()}
    mixes = {**usual, **(scenario.shape_mix or {}), **(own.shape_mix or {})}
    return Sending(own.weight, own.batch_mix or scenario.batch_mix or ((1, 1.0),), combined(mixes), own.data or scenario.data or "")
