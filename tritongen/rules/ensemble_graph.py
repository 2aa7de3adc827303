"""The data flow of an ensemble: which step writes which tensor, what is ready when, and what is left over. Pure, from one config.

As `ValidateEnsembleSchedulingConfig` and `BuildEnsembleGraph` do it (core/src/model_config_utils.cc): a step runs when all its tensors are there, whatever the
order in the file; in the end every tensor must have been written, and be read by a step or be an output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Writer = tuple[int, str]
"""A step's index and the name of its model's output."""


@dataclass(frozen=True)
class Graph:
    """An ensemble's tensors.

    Attributes:
        inputs: names of the ensemble's inputs.
        outputs: names of the ensemble's outputs.
        written: tensor → who writes it, in the order of the file.
        read: tensor → (step, input of its model) for everyone who reads it.
        ready: tensors that get a value.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    written: dict[str, list[Writer]]
    read: dict[str, list[Writer]]
    ready: frozenset[str]

    @property
    def unwritten(self) -> tuple[str, ...]:
        """Tensors that are read, or are outputs, and that nobody writes."""
        wanted = dict.fromkeys([*self.read, *self.outputs])
        return tuple(name for name in wanted if name not in self.written and name not in self.inputs)

    @property
    def unread(self) -> tuple[str, ...]:
        """Tensors that a step writes and nobody reads, in the order of the file."""
        return tuple(name for name in self.written if name not in self.read and name not in self.outputs)

    @property
    def looped(self) -> tuple[str, ...]:
        """Tensors whose steps wait for each other, or for such tensors, though each is written by someone."""
        written_by: dict[int, list[str]] = {}
        for name, writers in self.written.items():
            for step, _ in writers:
                written_by.setdefault(step, []).append(name)
        lost = set(self.unwritten)
        waiting = list(lost)
        while waiting:
            for step, _ in self.read.get(waiting.pop(), ()):
                new = [name for name in written_by.get(step, ()) if name not in lost]
                lost.update(new)
                waiting += new
        return tuple(name for name in self.written if name not in self.ready and name not in lost)


def build_graph(config: Any) -> Graph:
    """The graph of an ensemble's config."""
    inputs = tuple(dict.fromkeys(tensor.name for tensor in config.input))
    outputs = tuple(dict.fromkeys(tensor.name for tensor in config.output))
    written: dict[str, list[Writer]] = {}
    read: dict[str, list[Writer]] = {}
    for index, step in enumerate(config.ensemble_scheduling.step):
        for inner, tensor in sorted(step.input_map.items()):
            read.setdefault(tensor, []).append((index, inner))
        for inner, tensor in sorted(step.output_map.items()):
            written.setdefault(tensor, []).append((index, inner))
    return Graph(inputs, outputs, written, read, frozenset(name for name, _ in flow(config)))


def flow(config: Any) -> Iterator[tuple[str, int | None]]:
    """Every tensor that gets a value, in an order in which values can appear, with the step that writes it (None for the ensemble's inputs)."""
    ready = dict.fromkeys(tensor.name for tensor in config.input)
    for name in ready:
        yield name, None
    waiting = dict(enumerate(config.ensemble_scheduling.step))
    while runnable := [index for index, step in waiting.items() if all(name in ready for name in step.input_map.values())]:
        for index in runnable:
            for name in sorted(waiting.pop(index).output_map.values()):
                if name not in ready:
                    ready[name] = None
                    yield name, index
