"""What a scenario and the models that it names cannot both say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pydantic_core import InitErrorDetails, PydanticCustomError

from tritongen.spec.batching import Batching
from tritongen.spec.scenarios import RANDOM, LoadTests, Scenario, Traffic
from tritongen.spec.sending import Asked
from tritongen.spec.shapes import ShapeRange
from tritongen.spec.values import problem

Place = tuple[str, ...]


class Served(Asked, Protocol):
    """What a load test must fit of a model that it sends to."""

    @property
    def batching(self) -> Batching:
        """The largest batch."""
        ...


def disagreements(load: LoadTests, models: Sequence[Served]) -> list[InitErrorDetails]:
    """What scenarios say that the models of the spec do not allow, at its place below `load`."""
    known = {model.name: model for model in models}
    return [
        InitErrorDetails(type=fault, loc=place, input=None)
        for name, scenario in load.scenarios.items()
        for place, fault in _of_scenario(scenario, known, ("scenarios", name))
    ]


def _of_scenario(scenario: Scenario, known: Mapping[str, Served], here: Place) -> Iterator[tuple[Place, PydanticCustomError]]:
    parts = scenario.models or {}
    for name in [name for name in parts if name not in known]:
        yield (*here, "models", name), problem(f"the spec has no model {name[:60]!r}", hint=f"its models are {', '.join(known)}")
    sent_to = [model for name, model in known.items() if not parts or name in parts]
    if len(sent_to) > 1:
        for key in [key for key in ("shape_mix", "data") if getattr(scenario, key) not in (None, RANDOM)]:
            message = f"it is about the inputs of one model, and the scenario has {len(sent_to)}"
            yield (*here, key), problem(message, code="TG015", hint=f"write it under models, as in models: {{{sent_to[0].name}: {{{key}: ...}}}}")
    said: set[str] = set()
    for model in sent_to:
        own = parts.get(model.name)
        for place, fault in _unfit(scenario, model, here) if own is None or own.batch_mix is None or len(sent_to) == 1 else ():
            if place[-1] not in said:
                said.add(place[-1])
                yield place, fault
        if own is not None:
            yield from _unfit(own, model, (*here, "models", model.name))


def _unfit(traffic: Traffic, model: Served, here: Place) -> Iterator[tuple[Place, PydanticCustomError]]:
    """What cannot be sent to a model, as far as the spec says."""
    most = model.batching.max
    rows = max((rows for rows, _ in traffic.batch_mix or ()), default=1)
    if most is not None and rows > max(most, 1):
        why = f"{model.name} has batching.max: {most}" if most else f"{model.name} does not batch"
        hint = f"write sizes up to {most}, or raise batching.max" if most else "leave it out, or let the model batch"
        fault = problem(f"a request of {rows} rows is too large: {why}", code="TG015", consequence="Triton refuses such a request", hint=hint)
        yield (*here, "batch_mix"), fault
    for name, mix in (traffic.shape_mix or {}).items():
        known = model.known_shapes.get(name)
        faults = (_outside(sizes, known, model.name) for sizes, _ in mix) if known is not None else ()
        if first := next(filter(None, faults), None):
            yield (*here, "shape_mix", name), first


def _outside(sizes: Sequence[int], known: ShapeRange, model: str) -> PydanticCustomError | None:
    """The problem of a size that lies outside the model's `shapes`."""
    shown, low, high = ("x".join(map(str, dims)) for dims in (sizes, known.min, known.max))
    if len(sizes) != len(known.min):
        message = f"{shown} has {len(sizes)} dimensions, and shapes of {model} has {len(known.min)}"
        return problem(message, code="TG015", hint=f"write one such as {low}, without the batch dimension")
    if all(least <= size <= most for least, size, most in zip(known.min, sizes, known.max, strict=True)):
        return None
    hint = f"write sizes from {low} to {high}, or widen shapes"
    return problem(f"{shown} lies outside shapes of {model}: {low} to {high}", code="TG015", consequence="such a request is slow, or refused", hint=hint)
